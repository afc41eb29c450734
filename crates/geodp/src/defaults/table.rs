//! Defaults of private linear models and MLPs on tables: rules in N, ε, the number of inputs and of classes, which
//! are all public.
//!
//! With x = ε·N/1000, k classes, and r = √(inputs + 1), about the longest an input can be whose entries lie in
//! [−1, 1]:
//!
//! | what | rule | reason |
//! |---|---|---|
//! | batch B | min(N, 32768) | at one ε the noise of a whole pass is smallest in few, large steps |
//! | travel L, two classes | 560·x^1.5·min(1, r/5.6)², at most 4000·√x/r·max(1, 8.5/r), within 80 … 8000 | noise moves a score by ∝ L·r/(ε·N), and must not outweigh what was learnt |
//! | travel L, more classes | 310·x^0.7, within 80 … 2800 | |
//! | steps T | L/4, within 50 … 400 | |
//! | clip C, two classes | 0.125·max(r, 5.6)·x^0.6, within 0.1·r … 0.5·r | a small C is quiet but bends probabilities |
//! | clip C, more classes | r·x/(2·k²), within 0.05·r … 0.65·r | each class has its own part of the records |
//! | rate η | L/(10·T·C), falling to 0 in a line | momentum 0.9 makes a step ten times as long |
//! | δ | 1e-5, or 1/(10·N) if that is smaller than 1e-6 | δ must stay well below 1/N |
//!
//! An MLP: L = 140·x^0.68 within 50 … 3300, C = 2.8·x^0.45 within 0.1·r … 1.5·r for two classes, and for more that
//! of a linear model; where it learns a number L = 56·x^0.68 within 20 … 1300, C = 0.15·r. Its gradients are longer,
//! and one step changes its scores by more.
//!
//! Where a linear model learns a number: L = 170·x within 60 … 2000, C = 0.4·r·(x/3)^0.6 within 0.3·r … r. Its
//! residuals are short and do not vanish, so that a small C would only slow it.
//!
//! Chosen on splits 0 to 39 of tables of N = 134 … 9,000: two classes on breast cancer, anes96, musk, spam, fair,
//! ticdata, income and `examples/tabular`, more on wine and digits, numbers on diabetes and Friedman's first set.
//! `benchmarks/tables/defaults.py` asks on splits on which nothing was chosen, and on randhie and a made table of a
//! million rows, how far a linear model is from the best of nine combinations (C and L times 0.3, 1, 3): in all 33
//! rows (eleven tables, ε = 1, 3, 8) accuracy is within 0.6 points and log loss within 9 %. MLPs, on other such splits:
//! 30 of 33 rows within 1 point and 10 %; musk and anes96 at ε = 1 are 13 and 12 % above, musk at ε = 8 1.3 ± 1.1 points below.

use crate::params::{PrivacyParams, TrainParams};
use crate::plan::{DEFAULT_DELTA, DEFAULT_EPSILON};
use crate::schedule::Schedule;

/// The largest batch by default: what two cores sum in a few hundredths of a second.
const LARGEST_BATCH: u64 = 32_768;
/// Decay of the average of the weights that is released.
const AVERAGE: f64 = 0.9999;
/// Travel of a step at most: fewer steps than by default must not be wild ones.
const LONGEST_STEP: f64 = 20.0;
/// r of a table of 30 columns: with fewer, scores need less travel; with more, C may be longer.
const MIDDLING_LENGTH: f64 = 5.6;

/// What is public about a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    /// Units of privacy.
    pub(super) records: u64,
    /// Values of a record.
    pub(super) inputs: usize,
    /// Classes to tell apart; 0 where a number is learnt.
    pub(super) classes: usize,
    /// Whether the model is linear; else it is an MLP.
    pub(super) linear: bool,
}

impl Table {
    /// Travel L and clip C at this ε.
    fn travel_and_clip(self, epsilon: f64) -> (f64, f64) {
        let thousands = epsilon * self.records as f64 / 1000.0;
        let longest = (self.inputs as f64 + 1.0).sqrt();
        let of_many = || {
            let classes = self.classes as f64;
            (0.5 * thousands / (classes * classes)).clamp(0.05, 0.65) * longest
        };
        match (self.linear, self.classes) {
            (true, 0) => {
                let share = (0.4 * (thousands / 3.0).powf(0.6)).clamp(0.3, 1.0);
                ((170.0 * thousands).clamp(60.0, 2000.0), share * longest)
            }
            (true, ..=2) => {
                let travel =
                    560.0 * thousands.powf(1.5) * (longest / MIDDLING_LENGTH).min(1.0).powi(2);
                let quiet = 4000.0 * thousands.sqrt() / longest * (8.5 / longest).max(1.0);
                let clip = 0.125 * longest.max(MIDDLING_LENGTH) * thousands.powf(0.6);
                let clip = clip.clamp(0.1 * longest, 0.5 * longest);
                (travel.min(quiet).clamp(80.0, 8000.0), clip)
            }
            (true, _) => ((310.0 * thousands.powf(0.7)).clamp(80.0, 2800.0), of_many()),
            (false, 0) => ((56.0 * thousands.powf(0.68)).clamp(20.0, 1300.0), 0.15 * longest),
            (false, classes) => {
                let clip = (2.8 * thousands.powf(0.45)).clamp(0.1 * longest, 1.5 * longest);
                let clip = if classes > 2 { of_many() } else { clip };
                ((140.0 * thousands.powf(0.68)).clamp(50.0, 3300.0), clip)
            }
        }
    }
}

/// Fills in what was left open.
pub(super) fn complete(privacy: &mut PrivacyParams, train: &mut TrainParams, table: Table) {
    let n = table.records as f64;
    privacy.delta.get_or_insert(if n < 1e5 { DEFAULT_DELTA } else { 0.1 / n });
    // An ε that is no ε is refused by the plan, in words of its own; no rule is made of it.
    let epsilon = privacy.epsilon.filter(|epsilon| *epsilon > 0.0).unwrap_or(DEFAULT_EPSILON);
    let (travel, clip) = table.travel_and_clip(epsilon);
    let batch = *train.batch.get_or_insert(table.records.min(LARGEST_BATCH));
    if train.epochs.is_none() && train.steps.is_none() {
        train.steps = Some((travel / 4.0).clamp(50.0, 400.0) as u64);
    }
    let per_epoch = (n / batch.max(1) as f64).max(1.0);
    let steps = train
        .steps
        .map_or_else(|| train.epochs.unwrap_or(1) as f64 * per_epoch, |steps| steps as f64);
    let clip = *privacy.clip_norm.get_or_insert(two_digits(clip));
    train
        .learning_rate
        .get_or_insert(two_digits(travel.min(LONGEST_STEP * steps) / (10.0 * steps * clip)));
    train.schedule.get_or_insert(Schedule::LINEAR);
    train.average.get_or_insert(AVERAGE);
}

/// The number with two significant digits: nothing here is known better.
fn two_digits(value: f64) -> f64 {
    format!("{value:.1e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(table: Table, epsilon: f64) -> (PrivacyParams, TrainParams) {
        let (mut privacy, mut train) = (PrivacyParams::default(), TrainParams::default());
        privacy.epsilon = Some(epsilon);
        complete(&mut privacy, &mut train, table);
        (privacy, train)
    }

    #[test]
    fn any_number_of_records_gets_numbers_in_range() {
        for records in [1, 100, 133, 5_000, 1_000_000, 4_000_000_000] {
            for (inputs, classes) in [(1, 2), (30, 0), (30, 3), (10_000, 1), (10_000, 1000)] {
                for (epsilon, linear) in
                    [(-1.0, true), (0.01, false), (1.0, true), (8.0, false), (100.0, true)]
                {
                    let table = Table { records, inputs, classes, linear };
                    let (privacy, train) = completed(table, epsilon);
                    assert!(train.batch.unwrap() >= 1 && train.batch.unwrap() <= records);
                    assert!((50..=400).contains(&train.steps.unwrap()));
                    assert!(train.learning_rate.unwrap() > 0.0 && privacy.clip_norm.unwrap() > 0.0);
                    assert!(privacy.delta.unwrap() <= 0.1 / records as f64 || records < 100_000);
                }
            }
        }
    }

    /// x = 1 and r = 4.
    #[test]
    fn rules_by_hand() {
        let rules = |classes, linear| {
            let table = Table { records: 1000, inputs: 15, classes, linear };
            let (privacy, train) = completed(table, 1.0);
            (privacy.clip_norm.unwrap(), train.steps.unwrap(), train.learning_rate.unwrap())
        };
        assert_eq!(rules(2, true), (0.7, 71, 0.57));
        assert_eq!(rules(3, true), (0.22, 77, 1.8));
        assert_eq!(rules(0, true), (1.2, 50, 0.28));
        assert_eq!(rules(2, false), (2.8, 50, 0.1));
        assert_eq!(rules(3, false), (0.22, 50, 1.3));
    }

    #[test]
    fn what_was_given_stays() {
        let (mut privacy, mut train) = (PrivacyParams::default(), TrainParams::default());
        (privacy.clip_norm, privacy.delta) = (Some(0.5), Some(1e-7));
        (train.batch, train.epochs, train.learning_rate) = (Some(64), Some(3), Some(1.0));
        complete(
            &mut privacy,
            &mut train,
            Table { records: 1000, inputs: 4, classes: 2, linear: true },
        );
        assert_eq!((privacy.clip_norm, privacy.delta), (Some(0.5), Some(1e-7)));
        assert_eq!((train.batch, train.epochs, train.steps), (Some(64), Some(3), None));
        assert_eq!(train.learning_rate, Some(1.0));
    }
}
