//! Writes a sample report and its figures, to look at:
//! `cargo run -p geodp-report --example sample -- DIR` gives `DIR/report.html` and `DIR/*.svg`.
//!
//! The numbers are made up by formulas; the browser test renders the same page.

use geodp_report::{
    Axis, Bars, Callout, Chart, Estimate, Figure, Histogram, Page, Role, Section, Series, Table,
    Text, Tone, format,
};
use std::time::Duration;

/// A deterministic stand-in for a standard normal sample.
fn bell(i: u32) -> f64 {
    let uniform = |k: u32| f64::from(i.wrapping_mul(k).wrapping_add(k) % 65_521) / 65_521.0;
    let total: f64 =
        [2654435761, 40503, 69069, 1664525, 22695477, 1103515245].map(uniform).iter().sum();
    (total - 3.0) * 2f64.sqrt()
}

/// Error against σ, log axes, bands, theory.
fn error_chart() -> Chart {
    let sigmas = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
    let dp = |s: f64| 2.4 * s * s / (1.0 + 2.4 * s * s / 8.0) + 1e-7;
    let geo = |s: f64, beta: f64| (60.0 * beta * s).powi(2) / 40.0 + 1e-9;
    let mut chart = Chart::new(
        "Error of the direction: DP and GeoDP at three bounding factors",
        Axis::log("noise multiplier σ"),
        Axis::log("MSE of θ").unit("rad²"),
    );
    let line = |name: &str, role, f: &dyn Fn(f64) -> f64| {
        Series::line(name, role, sigmas.map(|s| (s, f(s))))
            .band(sigmas.map(|s| (0.6 * f(s), 1.6 * f(s))))
            .markers()
    };
    chart = chart.series(line("DP", Role::Dp, &dp));
    for beta in [1.0, 0.1, 0.01] {
        let name = format!("GeoDP, β = {beta}");
        chart = chart.series(line(&name, Role::GeoDp, &|s| geo(s, beta)));
    }
    chart
        .series(Series::line("theory", Role::Theory, sigmas.map(|s| (s, geo(s, 0.1) * 1.05))))
        .mark_x(1.0, "σ = 1")
}

/// Loss over steps.
fn loss_chart() -> Chart {
    let curve = |floor: f64, speed: f64, noise: f64| {
        (0..1172).map(move |t| {
            let loss = floor + (2.3 - floor) * (-f64::from(t) * speed).exp();
            (f64::from(t), loss + noise * bell(t))
        })
    };
    Chart::new(
        "Training loss",
        Axis::linear("step"),
        Axis::linear("cross-entropy loss").unit("nats"),
    )
    .series(Series::line("no noise", Role::NoNoise, curve(0.05, 0.012, 0.01)))
    .series(Series::line("DP", Role::Dp, curve(0.31, 0.008, 0.03)))
    .series(Series::line("GeoDP, β = 0.01", Role::GeoDp, curve(0.17, 0.009, 0.02)))
}

/// ε over steps with its target.
fn epsilon_chart() -> Chart {
    let spent = (0..=1172).step_by(4).map(|t| (f64::from(t), 0.085 * f64::from(t).sqrt()));
    Chart::new("Privacy spent", Axis::linear("step"), Axis::linear("ε at δ = 10⁻⁵"))
        .series(Series::line("", Role::Dp, spent))
        .mark_y(3.0, "target ε = 3")
}

/// Gradient norms with the threshold.
fn norm_chart() -> Chart {
    let norms = (0..6000).map(|i| (0.9 * bell(i) - 1.6).exp()).chain([0.0, f64::NAN]);
    Chart::new("Norms of per-sample gradients", Axis::log("gradient norm"), Axis::linear("records"))
        .series(Series::histogram("", Role::Neutral, Histogram::log(norms, 40)))
        .mark_x(0.1, "C = 0.1")
}

/// Membership inference.
fn roc_chart() -> Chart {
    let curve = |power: f64| {
        (0..=60).map(move |i| {
            let fpr = 10f64.powf(-f64::from(60 - i) / 15.0);
            (fpr, fpr.powf(power))
        })
    };
    Chart::roc("Membership inference", 1e-3)
        .series(Series::line("LiRA, no noise", Role::NoNoise, curve(0.35)))
        .series(Series::line("LiRA, DP", Role::Dp, curve(0.93)))
        .series(Series::line("LiRA, GeoDP", Role::GeoDp, curve(0.7)))
}

/// Accuracy against measured ε.
fn scatter_chart() -> Chart {
    let cloud = |seed: u32, lift: f64| {
        (0..40).map(move |i| {
            let eps = 10f64.powf(f64::from(i) / 16.0 - 0.8);
            (eps, 97.0 - lift / (0.3 + eps) + 0.5 * bell(i + seed))
        })
    };
    Chart::new(
        "Accuracy at equal measured privacy",
        Axis::log("measured ε (max over records)"),
        Axis::linear("test accuracy").unit("%"),
    )
    .series(Series::scatter("DP over σ", Role::Dp, cloud(3, 6.0)))
    .series(Series::scatter("GeoDP over σ and β", Role::GeoDp, cloud(99, 7.5)))
}

/// Results by method.
fn accuracy_bars() -> Bars {
    let around = |values: [f64; 5]| values.map(|v| Estimate::plus_minus(v, 0.35));
    Bars::new(
        "Test accuracy of the CNN on MNIST, σ = 10",
        Axis::linear("test accuracy").unit("%"),
        [
            "DP B = 16384",
            "DP + PSAC B = 16384",
            "GeoDP B = 8192 β = 0.5",
            "GeoDP B = 16384 β = 0.1",
            "GeoDP + SUR + PSAC B = 16384 β = 0.1",
        ],
    )
    .group("published", Role::Neutral, [88.12, 88.48, 53.80, 93.58, 95.27])
    .group("here", Role::Dp, around([90.2, 90.4, 41.0, 71.3, f64::NAN]))
}

/// The page.
pub(crate) fn page() -> Page {
    let privacy = Section::new("What was bought")
        .headline([
            ("test accuracy", format::percent(0.9812)),
            ("ε, certified (δ = 10⁻⁵)", format::epsilon(2.931)),
            ("time", format::duration(Duration::from_secs(142))),
            ("samples per second", format::count(31_400)),
        ])
        .paragraph(
            Text::from("The released weights are ")
                .strong("(2.94, 10⁻⁵)-differentially private")
                .plain(" for adding or removing one record. This is a theorem about the algorithm that ran, not a measurement; its events stand in ")
                .code("ledger.jsonl")
                .plain("."),
        )
        .callout(Callout::Warning, "Noise was drawn from seed 7: repeatable, and not private against anyone who knows the seed.")
        .callout(Callout::Info, "GeoDP’s ε is conditional: it holds if every record moves the direction by at most √(d+2)·βπ/B.")
        .figure(&epsilon_chart(), "ε grows with the square root of steps and stays below its target.");
    let training = Section::new("Training")
        .key_values([
            ("model", Text::from("CNN, 21 840 parameters")),
            (
                "data",
                Text::from("MNIST, 60 000 records, fingerprint ")
                    .code("4f1c29ab77e0d3651b0c8aa2f0e9d4c7b6a5"),
            ),
            ("sampler", Text::from("Poisson, q = 0.0171, expected batch 1024")),
            ("mechanism", Text::from("DP, σ = 1.13, C = 0.1")),
        ])
        .figure(&loss_chart(), "Training loss. Lower is better; each point is one batch.")
        .figure(&norm_chart(), "Three quarters of the gradients are clipped.");
    let table = Table::new(["method", "batch", "published [%]", "here [%]", "ε (kind)", "claim"])
        .caption("CNN on MNIST, σ = 10, mean ± standard deviation over 3 seeds")
        .row([
            Text::from("DP"),
            "16384".into(),
            "88.12".into(),
            "90.2 ± 0.3".into(),
            "0.41 (certified)".into(),
            Text::default().badge(Tone::Good, "holds"),
        ])
        .row([
            Text::from("GeoDP, β = 0.1"),
            "16384".into(),
            "93.58".into(),
            "71.3 ± 0.4".into(),
            "0.58 (conditional)".into(),
            Text::default().badge(Tone::Bad, "does not hold"),
        ])
        .row([
            Text::from("GeoDP, β = 0.5"),
            "8192".into(),
            "53.80".into(),
            "41.0 ± 0.9".into(),
            "0.58 (conditional)".into(),
            Text::default().badge(Tone::Mixed, "released protocol only"),
        ]);
    let results = Section::new("Results")
        .figure(&error_chart(), "Below β ≈ 0.02 GeoDP keeps the direction better. Bands: 95 % intervals over 100 repeats.")
        .table(table)
        .figure(&accuracy_bars(), "Published values beside those measured here; whiskers are one standard deviation.");
    let audit = Section::new("Audit")
        .callout(Callout::Private, "The figures of this section depend on the records themselves.")
        .figure(
            &roc_chart(),
            "At a false positive rate of 0.1 % the attack on DP does little better than chance.",
        )
        .figure(&scatter_chart(), "At equal measured privacy the two methods lie together.")
        .subheading("No attack was run on the second model")
        .figure(
            &Chart::roc("Membership inference, second model", 1e-3).series(Series::line(
                "LiRA",
                Role::Dp,
                [],
            )),
            "A chart of nothing but chance.",
        )
        .figure(
            &Chart::new("Nothing yet", Axis::linear("step"), Axis::log("loss")),
            "A chart of nothing.",
        );
    Page::new("Private training of a CNN on MNIST")
        .subtitle("geodp 0.3.0 · run 2026-11-15 · two cores")
        .section(privacy)
        .section(training)
        .section(results)
        .section(audit)
        .section(Section::new("How to reproduce").code("geodp train --model cnn --data mnist --epsilon 3 --delta 1e-5 --clip-norm 0.1 --batch 1024 --epochs 20 --seed 7 --out runs/7\ngeodp report runs/7"))
        .footer("Made by geodp 0.3.0. Nothing on this page was fetched from anywhere.")
}

#[allow(dead_code, reason = "the browser test uses the page and not the program")]
fn main() -> std::io::Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "sample-report".to_owned());
    let dir = std::path::Path::new(&dir);
    std::fs::create_dir_all(dir)?;
    std::fs::write(dir.join("report.html"), page().to_html())?;
    let figures: [(&str, &dyn Figure); 7] = [
        ("error", &error_chart()),
        ("loss", &loss_chart()),
        ("epsilon", &epsilon_chart()),
        ("norms", &norm_chart()),
        ("roc", &roc_chart()),
        ("scatter", &scatter_chart()),
        ("accuracy", &accuracy_bars()),
    ];
    for (name, figure) in figures {
        std::fs::write(dir.join(format!("{name}.svg")), figure.svg().to_string())?;
        std::fs::write(dir.join(format!("{name}.csv")), figure.csv())?;
    }
    Ok(())
}
