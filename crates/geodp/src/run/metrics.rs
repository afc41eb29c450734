//! `metrics.jsonl`: one JSON object a block of steps, for the data's owner.
//!
//! Losses, accuracies and norms of training batches are computed on private records without noise.
//! They help to choose a threshold or a learning rate, and they are not covered by the privacy
//! statement: the file, and the part of the report made from it, are not for release.

use super::files;
use crate::Error;
use crate::config::TestIs;
use crate::scores::Errors;
use crate::select::Selection;
use geodp_account::Claim;
use geodp_mechanism::perturb::PolarSummary;
use geodp_nn::BatchOutcome;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

/// Bins of the norm histogram in every power of ten.
const BINS_PER_DECADE: i32 = 8;
/// Exponent of ten where the histogram starts.
const FIRST_DECADE: i32 = -6;
/// Number of bins; norms outside fall into the first or the last.
pub(crate) const BINS: usize = 80;

/// One line: what a block of steps looked like, and how the model did after it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockMetrics {
    /// Steps done after the block.
    pub step: u64,
    /// Passes over the data done after the block.
    pub epoch: f64,
    /// Records used in the block.
    pub records: u64,
    /// Mean training loss of those records, before each step. Private.
    pub loss: Option<f64>,
    /// Training accuracy of those records. Private.
    pub accuracy: Option<f64>,
    /// Share of gradients longer than C. Private.
    pub clipped: Option<f64>,
    /// Seconds the block took.
    pub seconds: f64,
    /// Histogram of gradient norms as (bin, count). Private.
    pub norms: Vec<(usize, u64)>,
    /// The claim after the block, where it was computed: in the first epoch, and at the end of any and of the run.
    /// Never without privacy.
    pub epsilon: Option<Claim>,
    /// Loss and accuracy on held-out records, where they were measured.
    pub test: Option<TestMetrics>,
    /// Steps kept and taken back since the start, where SUR selects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// Polar, isotropic and directionless steps since the start; certified GeoDP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polar: Option<PolarSummary>,
}

impl BlockMetrics {
    /// Whether a block can have these numbers: what reads them later adds and draws them.
    fn is_possible(&self) -> bool {
        const MOST: u64 = 1 << 40;
        let counted = self.norms.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        let time = self.seconds.is_finite() && (0.0..1e12).contains(&self.seconds);
        time && self.epoch.is_finite()
            && self.records <= MOST
            && self.norms.iter().all(|(bin, _)| *bin < BINS)
            && counted.is_some_and(|counted| counted <= MOST)
    }
}

/// How the model does on held-out records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TestMetrics {
    /// Mean loss.
    pub loss: f64,
    /// Share of records classified rightly.
    pub accuracy: f64,
    /// How many there were: all at the end of a run, before it perhaps an even share of them.
    pub records: usize,
    /// How far off numbers are, where numbers are learnt and not classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// Whose they are: figures from private records are for the data's owner.
    #[serde(default)]
    pub is: TestIs,
}

/// Gathers the outcomes of a block's steps.
#[derive(Debug, Default)]
pub(crate) struct BlockSummary {
    records: u64,
    /// Records that told their loss: clients do not.
    judged: u64,
    loss: f64,
    /// Labels, and how many were hit.
    rows: u64,
    correct: usize,
    normed: u64,
    clipped: u64,
    bins: Vec<u64>,
}

impl BlockSummary {
    pub(crate) fn add(&mut self, outcome: &BatchOutcome, clip_norm: Option<f64>) {
        self.bins.resize(BINS, 0);
        self.records += outcome.losses.len().max(outcome.norms.len()) as u64;
        self.judged += outcome.losses.len() as u64;
        self.loss += outcome.losses.iter().map(|l| f64::from(*l)).sum::<f64>();
        self.rows += outcome.rows as u64;
        self.correct += outcome.correct;
        for norm in &outcome.norms {
            self.bins[bin_of(f64::from(*norm))] += 1;
            self.normed += 1;
            self.clipped += u64::from(clip_norm.is_some_and(|c| f64::from(*norm) > c));
        }
    }

    pub(crate) fn metrics(&self) -> BlockMetrics {
        let share = |part: f64, of: u64| (of > 0).then(|| part / of as f64);
        BlockMetrics {
            records: self.records,
            // A loss that is not a number has no place in JSON.
            loss: share(self.loss, self.judged).filter(|loss| loss.is_finite()),
            accuracy: share(self.correct as f64, self.rows),
            clipped: share(self.clipped as f64, self.normed),
            norms: self.bins.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect(),
            ..BlockMetrics::default()
        }
    }
}

/// The bin of a norm: logarithmic, the ends catch everything beyond (and NaN). Found among the edges: a
/// logarithm for each record would take as long as a tenth of a small model's step.
pub(crate) fn bin_of(norm: f64) -> usize {
    static EDGES: LazyLock<[f64; BINS]> = LazyLock::new(|| std::array::from_fn(bin_start));
    if norm.is_nan() {
        return BINS - 1;
    }
    EDGES.partition_point(|edge| *edge <= norm).saturating_sub(1)
}

/// Lower edge of a bin.
pub(crate) fn bin_start(bin: usize) -> f64 {
    10f64.powf(f64::from(FIRST_DECADE) + bin as f64 / f64::from(BINS_PER_DECADE))
}

/// Appends one line.
pub(crate) fn append(path: &Path, metrics: &BlockMetrics) -> Result<(), Error> {
    let write = || -> std::io::Result<()> {
        let mut line = serde_json::to_string(metrics)?;
        line.push('\n');
        files::append_secret(path)?.write_all(line.as_bytes())
    };
    write().map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// All whole lines up to `step`; a torn last line, left by a crash, is passed over.
///
/// # Errors
/// [`Error::Damaged`] with the line number if another line cannot be read.
pub(crate) fn read_until(path: &Path, step: u64) -> Result<Vec<BlockMetrics>, Error> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = files::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut all = Vec::new();
    for (at, line) in whole.lines().enumerate() {
        let metrics: BlockMetrics = serde_json::from_str(line).map_err(|error| Error::Damaged {
            path: path.to_owned(),
            reason: format!("line {}: {error}. Delete the file to go on without it", at + 1),
        })?;
        if !metrics.is_possible() {
            return Err(Error::Damaged {
                path: path.to_owned(),
                reason: format!(
                    "line {}: its numbers cannot be. Delete the file to go on without it",
                    at + 1
                ),
            });
        }
        if metrics.step <= step {
            all.push(metrics);
        }
    }
    Ok(all)
}

/// Replaces the file by these lines: what a resumed run starts from.
pub(crate) fn rewrite(path: &Path, metrics: &[BlockMetrics]) -> Result<(), Error> {
    let mut text = String::new();
    for line in metrics {
        text.push_str(&serde_json::to_string(line).unwrap_or_default());
        text.push('\n');
    }
    files::write_secret(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;

    #[test]
    fn bins_cover_everything() {
        assert_eq!(bin_of(0.0), 0);
        assert_eq!(bin_of(f64::NAN), BINS - 1);
        assert_eq!(bin_of(f64::INFINITY), BINS - 1);
        for bin in 0..BINS {
            let middle = (bin_start(bin) * bin_start(bin + 1)).sqrt();
            assert_eq!(bin_of(middle), bin);
        }
    }

    #[test]
    fn a_summary_is_a_mean_over_records() {
        let mut outcome = BatchOutcome::default();
        outcome.losses = vec![1.0, 3.0];
        outcome.norms = vec![0.05, 0.2];
        (outcome.correct, outcome.rows) = (1, 2);
        let mut summary = BlockSummary::default();
        summary.add(&outcome, Some(0.1));
        summary.add(&BatchOutcome::default(), Some(0.1));
        let metrics = summary.metrics();
        assert_eq!(
            (metrics.loss, metrics.accuracy, metrics.clipped),
            (Some(2.0), Some(0.5), Some(0.5))
        );
        assert_eq!(BlockSummary::default().metrics().loss, None);
    }

    #[test]
    fn a_torn_line_is_passed_over_and_later_steps_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        for step in [1, 2, 3] {
            append(&path, &BlockMetrics { step, ..BlockMetrics::default() }).unwrap();
        }
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"step\":4,").unwrap();
        let lines = read_until(&path, 2).unwrap();
        assert_eq!(lines.iter().map(|l| l.step).collect::<Vec<_>>(), [1, 2]);
        rewrite(&path, &lines).unwrap();
        assert_eq!(read_until(&path, 9).unwrap(), lines);
        std::fs::write(&path, "{}\nnonsense\n{}\n").unwrap();
        assert!(read_until(&path, 9).is_err());
        // Numbers that no block has are refused before anything is computed from them.
        let good = BlockMetrics { seconds: 2.0, norms: vec![(3, 5)], ..BlockMetrics::default() };
        for bad in [
            BlockMetrics { seconds: -2.0, ..good.clone() },
            BlockMetrics { seconds: 1e300, ..good.clone() },
            BlockMetrics { records: u64::MAX, ..good.clone() },
            BlockMetrics { norms: vec![(3, u64::MAX), (4, 1)], ..good.clone() },
            BlockMetrics { norms: vec![(BINS, 1)], ..good.clone() },
        ] {
            rewrite(&path, &[good.clone(), bad]).unwrap();
            let error = read_until(&path, 9).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
        rewrite(&path, std::slice::from_ref(&good)).unwrap();
        assert_eq!(read_until(&path, 9).unwrap(), [good]);
    }
}
