//! How good answers are: confusion matrix, recall of each class, AUC and calibration.
//!
//! AUC is the chance that a record of the class gets a higher probability for it than one of another
//! class, ties counting half (Mann–Whitney); of several classes, one against the rest, averaged over the
//! classes that occur. A calibration bin holds the answers whose probability lies in it: in a calibrated
//! model, as many of them are right as it says. Figures from private records are for their owner.

use serde::{Deserialize, Serialize};

/// Bins of the calibration curve, of equal width in \[0, 1\].
const BINS: usize = 10;

/// Everything that is known of a classifier's answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scores {
    /// Rows: the class a record has; columns: the class it was given.
    pub confusion: Vec<Vec<u64>>,
    /// Share of each class's records that were found; absent where there are none.
    pub recall: Vec<Option<f64>>,
    /// Area under the curve; absent where all records are of one class.
    pub auc: Option<f64>,
    /// Answers by the probability they were given with; of two classes, that of the second.
    pub calibration: Vec<CalibrationBin>,
}

/// Answers of about the same probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationBin {
    /// Their mean probability.
    pub predicted: f64,
    /// Share of them that were so.
    pub observed: f64,
    /// How many there are.
    pub records: u64,
}

impl Scores {
    /// Scores of `probabilities`, a row of `classes` values for each label.
    ///
    /// # Panics
    /// If a label is not below `classes`, or there are not `classes` values for each.
    pub fn of(probabilities: &[f32], labels: &[u32], classes: usize) -> Self {
        assert_eq!(probabilities.len(), labels.len() * classes, "a row of values for each label");
        let mut confusion = vec![vec![0; classes]; classes];
        let rows = || probabilities.chunks_exact(classes.max(1)).zip(labels);
        for (row, &label) in rows() {
            confusion[label as usize][most_probable(row)] += 1;
        }
        let recall = confusion.iter().enumerate().map(|(class, row)| {
            let all: u64 = row.iter().sum();
            (all > 0).then(|| row[class] as f64 / all as f64)
        });
        let of_class = |class: usize| {
            auc(rows().map(|(row, &label)| (row[class], label as usize == class)).collect())
        };
        // Of two classes the second says it all: the first's curve is the same.
        let first = if classes == 2 { 1 } else { 0 };
        let areas: Vec<f64> = (first..classes).filter_map(of_class).collect();
        let answers = rows().map(|(row, &label)| match classes {
            2 => (row[1], label == 1),
            _ => {
                let best = most_probable(row);
                (row[best], label as usize == best)
            }
        });
        Scores {
            recall: recall.collect(),
            auc: (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64),
            calibration: calibration(answers),
            confusion,
        }
    }
}

/// How far off numbers are, in the label's own unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// Mean of |predicted − true|.
    pub mae: f64,
    /// Root of the mean of (predicted − true)².
    pub rmse: f64,
    /// 1 − Σ (predicted − true)² / Σ (true − mean)²: 0 for answering the mean, 1 for the truth; absent
    /// where all are the same.
    pub r_squared: Option<f64>,
}

impl Errors {
    /// Errors of outputs against targets, both as places in `range`; outputs beyond it are its ends.
    pub fn of(outputs: &[f32], targets: &[f32], range: [f64; 2]) -> Self {
        let count = targets.len().max(1) as f64;
        let true_values = || targets.iter().map(|&target| in_range(target, range));
        let mean = true_values().sum::<f64>() / count;
        let spread: f64 = true_values().map(|value| (value - mean).powi(2)).sum();
        let off =
            || outputs.iter().zip(true_values()).map(|(&o, value)| in_range(o, range) - value);
        let squares: f64 = off().map(|off| off * off).sum();
        Errors {
            mae: off().map(f64::abs).sum::<f64>() / count,
            rmse: (squares / count).sqrt(),
            r_squared: (spread > 0.0).then(|| 1.0 - squares / spread),
        }
    }
}

impl std::fmt::Display for Errors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RMSE {:.4}, MAE {:.4}", self.rmse, self.mae)?;
        self.r_squared.map_or(Ok(()), |r_squared| write!(f, ", R² {r_squared:.4}"))
    }
}

/// A place in \[0, 1\] as the number it stands for.
pub(crate) fn in_range(place: f32, [low, high]: [f64; 2]) -> f64 {
    low + f64::from(place).clamp(0.0, 1.0) * (high - low)
}

/// The most probable class; of equal ones the last, as predictions say it.
pub(crate) fn most_probable(row: &[f32]) -> usize {
    (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0)
}

fn auc(mut answers: Vec<(f32, bool)>) -> Option<f64> {
    answers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut area, mut positives) = (0.0, 0.0, 0.0);
    for tied in answers.chunk_by(|a, b| a.0 == b.0) {
        let yes = tied.iter().filter(|(_, is)| *is).count() as f64;
        let no = tied.len() as f64 - yes;
        area += yes * (below + no / 2.0);
        below += no;
        positives += yes;
    }
    (below > 0.0 && positives > 0.0).then(|| area / (below * positives))
}

fn calibration(answers: impl Iterator<Item = (f32, bool)>) -> Vec<CalibrationBin> {
    let mut bins = [(0.0, 0_u64, 0_u64); BINS];
    for (probability, is) in answers {
        let bin = &mut bins[((f64::from(probability) * BINS as f64) as usize).min(BINS - 1)];
        *bin = (bin.0 + f64::from(probability), bin.1 + u64::from(is), bin.2 + 1);
    }
    let filled = bins.into_iter().filter(|bin| bin.2 > 0);
    let bin = |(sum, yes, records): (f64, u64, u64)| CalibrationBin {
        predicted: sum / records as f64,
        observed: yes as f64 / records as f64,
        records,
    };
    filled.map(bin).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of scikit-learn: roc_auc_score([0,0,1,1], [.1,.4,.35,.8]) = 0.75.
    #[test]
    fn two_classes_by_hand() {
        let scores = [0.1f32, 0.4, 0.35, 0.8];
        let rows: Vec<f32> = scores.iter().flat_map(|p| [1.0 - p, *p]).collect();
        let found = Scores::of(&rows, &[0, 0, 1, 1], 2);
        assert_eq!(found.auc, Some(0.75));
        assert_eq!(found.confusion, [[2, 0], [1, 1]]);
        assert_eq!(found.recall, [Some(1.0), Some(0.5)]);
        assert_eq!(found.calibration.iter().map(|bin| bin.records).sum::<u64>(), 4);
        let last = found.calibration.last().unwrap();
        assert!((last.predicted - 0.8).abs() < 1e-6 && last.observed == 1.0);
    }

    /// Against the definition: every pair of one of the class and one not of it.
    #[test]
    fn auc_counts_pairs_and_ties_half() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let answers: Vec<(f32, bool)> =
            (0..200).map(|_| ((random() % 20) as f32, random() % 3 == 0)).collect();
        let (mut won, mut pairs) = (0.0, 0.0);
        for (a, _) in answers.iter().filter(|answer| answer.1) {
            for (b, _) in answers.iter().filter(|answer| !answer.1) {
                won += if a > b {
                    1.0
                } else if a == b {
                    0.5
                } else {
                    0.0
                };
                pairs += 1.0;
            }
        }
        assert!((auc(answers).unwrap() - won / pairs).abs() < 1e-12);
        assert_eq!(auc(vec![(0.5, true)]), None);
    }

    /// Values of scikit-learn for y = [0, 5, 10], ŷ = [1, 5, 8] (r2_score = 0.9).
    #[test]
    fn errors_are_in_the_labels_unit() {
        let found = Errors::of(&[0.1, 0.5, 0.8], &[0.0, 0.5, 1.0], [0.0, 10.0]);
        assert!(
            (found.mae - 1.0).abs() < 1e-6 && (found.rmse - (5.0f64 / 3.0).sqrt()).abs() < 1e-6
        );
        assert!((found.r_squared.unwrap() - 0.9).abs() < 1e-6);
        // Beyond the range is its end: a model cannot be worse than the range is wide.
        assert_eq!(Errors::of(&[7.0], &[1.0], [0.0, 10.0]).rmse, 0.0);
        assert_eq!(Errors::of(&[0.5], &[0.5], [0.0, 1.0]).r_squared, None);
    }

    #[test]
    fn a_class_without_records_has_no_recall() {
        let rows = [0.2f32, 0.5, 0.3, 0.6, 0.3, 0.1];
        let found = Scores::of(&rows, &[1, 0], 3);
        assert_eq!(found.recall, [Some(1.0), Some(1.0), None]);
        assert_eq!((found.auc, found.calibration.len()), (Some(1.0), 2));
        assert_eq!(Scores::of(&[], &[], 2).auc, None);
    }
}
