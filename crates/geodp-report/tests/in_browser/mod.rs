//! A page in a real browser, at the width of a phone and of a desk: nothing overflows, every figure
//! has a size, and no text in a figure is cut off or covers another.
//!
//! Looks for `GEODP_CHROMIUM`, then `chromium`, `chromium-browser`, `google-chrome` on the path;
//! where there is none it says that it was skipped. The page stands unchanged in frames of both
//! widths; a script beside them, in the test's own document, measures and writes what it found.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MEASURE: &str = r#"
window.onload = () => {
  const out = [];
  for (const frame of document.querySelectorAll('iframe')) {
    const doc = frame.contentDocument, width = frame.clientWidth, report = [];
    const say = (what, node) => report.push(what + ': ' + (node.textContent || node.tagName).slice(0, 60));
    if (doc.documentElement.scrollWidth > width) report.push('page overflows: ' + doc.documentElement.scrollWidth);
    for (const node of doc.querySelectorAll('body *:not(svg *)')) {
      const inScroller = node.closest('.scroll, pre');
      if (node.getBoundingClientRect().right > width + 0.5 && !(inScroller && inScroller !== node)) say('sticks out', node);
    }
    let figures = 0;
    for (const figure of doc.querySelectorAll('figure')) {
      const shown = [...figure.querySelectorAll(':scope > svg')].filter(svg => svg.getBoundingClientRect().width > 0);
      const box = shown.length === 1 && shown[0].getBoundingClientRect();
      if (!box || box.height < 100 || box.width < 300) { say('no size', figure); continue; }
      figures++;
      const texts = [...shown[0].querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()]);
      texts.forEach(([t, a], i) => {
        if (a.left < box.left - 1 || a.right > box.right + 1 || a.top < box.top - 1 || a.bottom > box.bottom + 1) say('cut off', t);
        if (a.height < 9) say('too small', t);
        for (const [u, b] of texts.slice(i + 1)) {
          const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (across > 1 && down > 4) say('covers ' + u.textContent, t);
        }
      });
    }
    out.push(width + ' px, ' + figures + ' figures', ...report);
  }
  document.getElementById('result').textContent = out.join('\n');
};
"#;

/// Fails unless `page` has at least `least_figures` figures and everything in it fits.
pub(crate) fn check(name: &str, page: &str, least_figures: usize) {
    let Some(browser) = find_browser() else {
        eprintln!("skipped: no browser is installed (set GEODP_CHROMIUM to one)");
        return;
    };
    let figures = page.matches("<figure ").count();
    assert!(figures >= least_figures, "{figures} figures");
    let dir = std::env::temp_dir().join(format!("geodp-report-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    let file = dir.join("frames.html");
    std::fs::write(&file, frames(page, &[360, 1280])).expect("a temporary file");
    let dom = dump_dom(&browser, &file, &dir.join("profile"));
    // Tidiness only: a left-over temporary directory is no failure of the page.
    let _ = std::fs::remove_dir_all(&dir);
    let dom = dom.expect("the browser renders the page");
    let result =
        dom.split("<pre id=\"result\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let expected = format!("360 px, {figures} figures\n1280 px, {figures} figures");
    assert_eq!(result, Some(expected.as_str()), "\nmeasured:\n{}", result.unwrap_or("nothing"));
}

fn frames(page: &str, widths: &[u32]) -> String {
    let source = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = |w: &u32| {
        format!(
            "<iframe style=\"width:{w}px;height:900px;border:0\" srcdoc=\"{source}\"></iframe>\n"
        )
    };
    let frames: String = widths.iter().map(frame).collect();
    format!(
        "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<pre id=\"result\">not measured</pre>\n\
         <script>{MEASURE}</script>\n{frames}"
    )
}

fn find_browser() -> Option<PathBuf> {
    let given = std::env::var_os("GEODP_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let on_path = || {
        names.iter().find_map(|name| {
            std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
        })
    };
    given.or_else(on_path)
}

/// Runs the browser on `file` and returns the document it ends with; gives up after two minutes.
fn dump_dom(browser: &Path, file: &Path, profile: &Path) -> Result<String, String> {
    let output = profile.with_extension("dom");
    let sink = std::fs::File::create(&output).map_err(|e| e.to_string())?;
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .stdout(sink)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", browser.display()))?;
    let start = Instant::now();
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => break,
            Some(status) => return Err(format!("{} ended with {status}", browser.display())),
            None if start.elapsed() > Duration::from_secs(120) => {
                // Both can only fail if it has just ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{} did not end within two minutes", browser.display()));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    std::fs::read_to_string(&output).map_err(|e| e.to_string())
}
