//! An SVG as a type: made only by this crate's figures, so its text is escaped and it holds no
//! script and no reference to anything outside.
//!
//! Width is in the units of the view box, one unit being one CSS pixel at natural size. Text stays
//! text; its width is estimated (a little generously) from the kind of each character, because no
//! font is at hand.

use crate::escape::{escape, escape_into};
use crate::theme::figure_css;
use std::fmt::{self, Write};

/// A finished figure. `to_string()` gives a standalone file; pages embed it by type.
#[derive(Clone, Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    title: String,
    desc: String,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64, title: &str, desc: &str, canvas: Canvas) -> Svg {
        Svg { width, height, title: title.to_owned(), desc: desc.to_owned(), body: canvas.0 }
    }

    /// The element for a page that carries [`figure_css`] itself. `class` chooses when it shows.
    pub(crate) fn inline(&self, class: &str) -> String {
        self.element(&format!("geodp-figure {class}"), "")
    }

    fn element(&self, class: &str, style: &str) -> String {
        let (w, h) = (coordinate(self.width), coordinate(self.height));
        let (title, desc) = (escape(&self.title), escape(&self.desc));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" viewBox=\"0 0 {w} {h}\" \
             width=\"{w}\" height=\"{h}\" role=\"img\" aria-label=\"{title}\">\n\
             <title>{title}</title>\n<desc>{desc}</desc>\n{style}\
             <rect class=\"paper\" width=\"{w}\" height=\"{h}\"/>\n{}</svg>\n",
            self.body
        )
    }
}

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.element("geodp-figure", &format!("<style>\n{}</style>\n", figure_css())))
    }
}

/// Where a text's position is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A short text with an optional exponent, such as 10⁻⁵, set as a raised smaller number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) exponent: Option<String>,
}

impl From<&str> for Label {
    fn from(text: &str) -> Label {
        Label { text: text.to_owned(), exponent: None }
    }
}

impl Label {
    /// Estimated width at the figure's ordinary size.
    pub(crate) fn width(&self) -> f64 {
        text_width(&self.text, 12.0) + self.exponent.as_deref().map_or(0.0, |e| text_width(e, 9.0))
    }
}

/// The elements of a figure, in drawing order.
#[derive(Default)]
pub(crate) struct Canvas(String);

impl Canvas {
    /// Adds `inner` as a group of a class, which colours it; nothing if it is empty.
    pub(crate) fn group(&mut self, class: &str, inner: Canvas) {
        if !inner.0.is_empty() {
            let _ = writeln!(self.0, "<g class=\"{class}\">\n{}</g>", inner.0);
        }
    }

    /// Adds `inner` with its origin at a place.
    pub(crate) fn moved(&mut self, (x, y): (f64, f64), inner: Canvas) {
        let (x, y) = (coordinate(x), coordinate(y));
        let _ = writeln!(self.0, "<g transform=\"translate({x} {y})\">\n{}</g>", inner.0);
    }

    /// Adds `inner` through a window that clips it; its coordinates stay the figure's own.
    pub(crate) fn window(&mut self, at: (f64, f64), size: (f64, f64), inner: Canvas) {
        if inner.0.is_empty() {
            return;
        }
        let [x, y, w, h] = [at.0, at.1, size.0, size.1].map(coordinate);
        let _ = writeln!(
            self.0,
            "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\">"
        );
        self.0.push_str(&inner.0);
        self.0.push_str("</svg>\n");
    }

    pub(crate) fn path(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            let _ = writeln!(self.0, "<path class=\"{class}\" d=\"{d}\"/>");
        }
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.path(class, &format!("M{}L{}", point(from), point(to)));
    }

    pub(crate) fn rect(&mut self, class: &str, x: f64, y: f64, w: f64, h: f64) {
        let [x, y, w, h] = [x, y, w.max(0.0), h.max(0.0)].map(coordinate);
        let _ = writeln!(
            self.0,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>"
        );
    }

    pub(crate) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, label: &Label) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (coordinate(at.0), coordinate(at.1));
        let _ = write!(self.0, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>");
        escape_into(&mut self.0, &label.text);
        if let Some(exponent) = &label.exponent {
            let _ = write!(self.0, "<tspan dy=\"-5\" font-size=\"9\">{}</tspan>", escape(exponent));
        }
        self.0.push_str("</text>\n");
    }
}

/// A coordinate with at most one decimal: a tenth of a pixel is below what anyone sees.
pub(crate) fn coordinate(x: f64) -> String {
    let text = format!("{x:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// `x y` for path data.
pub(crate) fn point((x, y): (f64, f64)) -> String {
    format!("{} {}", coordinate(x), coordinate(y))
}

/// Estimated width of `text` in a sans-serif font of `size` pixels.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.31,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '\u{202f}' => 0.4,
        '\u{a0}' => 0.31,
        'm' | 'w' | 'M' | 'W' | '%' | '×' | '=' | '−' | '±' | '<' | '>' | '+' => 0.88,
        c if c.is_uppercase() => 0.7,
        c if (c as u32) >= 0x2e80 => 1.05,
        _ => 0.6,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// Breaks `text` at spaces into lines of at most `width`; the last line that fits `max_lines` is
/// cut with an ellipsis if more remains.
pub(crate) fn wrap(text: &str, size: f64, width: f64, max_lines: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // "β = 0.1" is one word.
    let text = text.replace(" = ", "\u{a0}=\u{a0}");
    for word in text.split([' ', '\n', '\t']).filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line)
                if text_width(line, size) + text_width(" ", size) + text_width(word, size)
                    <= width =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let cut = lines.len() > max_lines;
    lines.truncate(max_lines);
    for (i, line) in lines.iter_mut().enumerate() {
        let ellipsis = cut && i + 1 == max_lines;
        if ellipsis || text_width(line, size) > width {
            while line.chars().count() > 1 && text_width(line, size) + size > width {
                line.pop();
            }
            line.push('…');
        }
    }
    lines
}
