//! The bar of a training: samples/s, loss, accuracy, ε so far with its kind, kinds of steps, time left.
//!
//! Drawn on standard error, and only on a terminal; elsewhere one line an epoch.

use geodp::config::TestIs;
use geodp::run::{BlockMetrics, Run, TestMetrics};
use geodp::watch::{Observer, Progress};
use geodp_report::format;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// Shows how features are computed, before a training begins.
pub(crate) struct FeatureBar {
    bar: ProgressBar,
}

impl FeatureBar {
    /// Nothing is drawn before the first feature, without a terminal, or where it is to be `quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        let bar = ProgressBar::hidden();
        if !quiet && std::io::stderr().is_terminal() {
            // The template is fixed text: if it were wrong, the default style would do.
            bar.set_style(
                ProgressStyle::with_template("features {bar:24} {percent:>3}% · {eta} left")
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("█▉▊▋▌▍▎▏ "),
            );
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        Self { bar }
    }

    /// So many of `total` images are done; told from any thread, not always in order.
    pub(crate) fn show(&self, done: usize, total: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Shows a training.
pub(crate) struct TrainingBar {
    bar: ProgressBar,
    label: String,
    /// Held-out records, on all of which the end is measured.
    held_out: usize,
    /// Lines instead of a bar: standard error is not a terminal.
    lines: bool,
    quiet: bool,
    started: Instant,
    records: u64,
    loss: Option<f64>,
    epsilon: String,
    test: String,
    steps: String,
}

impl TrainingBar {
    /// A bar for the rest of a run; `label` stands before it; `quiet` draws nothing.
    pub(crate) fn new(run: &Run, label: &str, quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if quiet || !terminal {
            ProgressBar::hidden()
        } else {
            let bar = ProgressBar::new(run.plan().steps()).with_position(run.steps_done());
            let template = format!("{label}{{bar:24}} {{percent:>3}}% {{msg}} · {{eta}} left");
            // The template is fixed text: if it were wrong, the default style would do.
            bar.set_style(
                ProgressStyle::with_template(&template)
                    .unwrap_or_else(|_| ProgressStyle::default_bar())
                    .progress_chars("█▉▊▋▌▍▎▏ "),
            );
            bar
        };
        Self {
            bar,
            label: label.to_owned(),
            held_out: run.split().test.len(),
            lines: !terminal,
            quiet,
            started: Instant::now(),
            records: 0,
            loss: None,
            epsilon: String::new(),
            test: String::new(),
            steps: String::new(),
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn message(&self) -> String {
        let rate = self.records as f64 / self.started.elapsed().as_secs_f64().max(1e-9);
        let loss = self.loss.map_or(String::new(), |loss| format!(" · loss {loss:.3}"));
        let Self { test, epsilon, steps, .. } = self;
        format!("{:.1}k samples/s{loss}{test}{epsilon}{steps}", rate / 1000.0)
    }
}

impl Observer for TrainingBar {
    fn on_step(&mut self, progress: &Progress) {
        self.records += progress.records as u64;
        if let Some(loss) = progress.loss {
            // A running mean: single batches jump.
            self.loss = Some(self.loss.map_or(loss, |mean| 0.9 * mean + 0.1 * loss));
        }
        self.bar.set_position(progress.step);
        if progress.step.is_multiple_of(4) {
            self.bar.set_message(self.message());
        }
    }

    fn on_block(&mut self, metrics: &BlockMetrics) {
        if let Some(epsilon) = &metrics.epsilon {
            self.epsilon = format!(" · {}", epsilon.short());
        }
        if let Some(polar) = metrics.polar {
            self.steps = format!(" · steps: {polar}");
        }
        if let Some(test) = metrics.test {
            let note = note(&test, self.held_out);
            self.test = match test.errors {
                Some(errors) => format!(" · test RMSE {:.4}{note}", errors.rmse),
                None => format!(" · test {:.2} %{note}", 100.0 * test.accuracy),
            };
            if self.lines && !self.quiet {
                eprintln!("{}epoch {:.1}: {}", self.label, metrics.epoch, self.message());
            }
        }
        self.bar.set_message(self.message());
    }

    fn on_warning(&mut self, message: &str) {
        self.bar.suspend(|| eprintln!("warning: {message}"));
    }
}

/// Whose the records are, and how many, where a point of the curve is of some of them.
fn note(test: &TestMetrics, held_out: usize) -> String {
    let private = test.is == TestIs::Private;
    let some = test.records < held_out;
    let count = format!("on {}", format::count(test.records as u64));
    match (private, some) {
        (false, false) => String::new(),
        (true, false) => " (private)".to_owned(),
        (false, true) => format!(" ({count})"),
        (true, true) => format!(" (private, {count})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_of_some_records_says_of_how_many() {
        let test = |records, is| TestMetrics { records, is, ..TestMetrics::default() };
        assert_eq!(note(&test(2500, TestIs::Public), 10_000), " (on 2500)");
        assert_eq!(note(&test(2500, TestIs::Private), 5000), " (private, on 2500)");
        assert_eq!(note(&test(5000, TestIs::Public), 5000), "");
        assert_eq!(note(&test(5000, TestIs::Private), 5000), " (private)");
    }
}
