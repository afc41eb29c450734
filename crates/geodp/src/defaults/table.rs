//! Defaults of private logistic regression on tables: rules in N, ε and the number of inputs.
//!
//! With r = √(inputs + 1), about the largest norm of an input whose entries lie in [−1, 1]:
//!
//! | what | rule | reason |
//! |---|---|---|
//! | batch B | min(N, 32768) | at one ε the noise of a whole pass is smallest in few, large steps |
//! | travel L | 0.17·ε·N, within 60 … 2000 | how far weights may go before noise, ∝ L/(ε·N), outweighs it |
//! | steps T | L/4, within 50 … 400 | |
//! | clip C | r·min(1, max(0.3, 0.4·(ε·N/3000)^0.6)) | a small C is quiet but bends probabilities |
//! | rate η | L/(10·T·C), falling to 0 in a line | momentum 0.9 makes a step ten times as long |
//! | δ | 1e-5, or 1/(10·N) if that is smaller than 1e-6 | δ must stay well below 1/N |
//!
//! Chosen on held-back quarters of nine tables of N = 134 … 15,143 (wine, diabetes, breast cancer,
//! anes96, digits, fair, spam, randhie, ticdata) at ε = 1, 3, 8, two or three seeds, against the best of
//! 108 combinations for each table: from N = 1,000 on the rule's accuracy is within 1.7 points and its
//! log loss within 19 % of that best (digits at ε = 8), mostly within 0.4 points and 3 %. Below N = 1,000
//! accuracy is within 5.3 points of a best that so few held-back records flatter.

use crate::params::{PrivacyParams, TrainParams};
use crate::plan::{DEFAULT_DELTA, DEFAULT_EPSILON};
use crate::schedule::Schedule;

/// The largest batch by default: what two cores sum in a few hundredths of a second.
const LARGEST_BATCH: u64 = 32_768;
/// Decay of the average of the weights that is released.
const AVERAGE: f64 = 0.9999;

/// Fills in what was left open, for `records` records of `inputs` values.
pub(super) fn complete(
    privacy: &mut PrivacyParams,
    train: &mut TrainParams,
    records: u64,
    inputs: usize,
) {
    let n = records as f64;
    privacy.delta.get_or_insert(if n < 1e5 { DEFAULT_DELTA } else { 0.1 / n });
    // An ε that is no ε is refused by the plan, in words of its own; no rule is made of it.
    let epsilon = privacy.epsilon.filter(|epsilon| *epsilon > 0.0).unwrap_or(DEFAULT_EPSILON);
    let epsilon_records = epsilon * n;
    let travel = (0.17 * epsilon_records).clamp(60.0, 2000.0);
    let batch = *train.batch.get_or_insert(records.min(LARGEST_BATCH));
    if train.epochs.is_none() && train.steps.is_none() {
        train.steps = Some((travel / 4.0).clamp(50.0, 400.0) as u64);
    }
    let per_epoch = (n / batch.max(1) as f64).max(1.0);
    let steps = train
        .steps
        .map_or_else(|| train.epochs.unwrap_or(1) as f64 * per_epoch, |steps| steps as f64);
    let share = (0.4 * (epsilon_records / 3000.0).powf(0.6)).clamp(0.3, 1.0);
    let clip = *privacy.clip_norm.get_or_insert(two_digits(share * (inputs as f64 + 1.0).sqrt()));
    train.learning_rate.get_or_insert(two_digits(travel.min(5.0 * steps) / (10.0 * steps * clip)));
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

    fn completed(records: u64, inputs: usize, epsilon: f64) -> (PrivacyParams, TrainParams) {
        let (mut privacy, mut train) = (PrivacyParams::default(), TrainParams::default());
        privacy.epsilon = Some(epsilon);
        complete(&mut privacy, &mut train, records, inputs);
        (privacy, train)
    }

    #[test]
    fn any_number_of_records_gets_numbers_in_range() {
        for records in [1, 100, 133, 5_000, 1_000_000, 4_000_000_000] {
            for inputs in [1, 30, 10_000] {
                for epsilon in [-1.0, 0.01, 1.0, 8.0, 100.0] {
                    let (privacy, train) = completed(records, inputs, epsilon);
                    assert!(train.batch.unwrap() >= 1 && train.batch.unwrap() <= records);
                    assert!((50..=400).contains(&train.steps.unwrap()));
                    assert!(train.learning_rate.unwrap() > 0.0 && privacy.clip_norm.unwrap() > 0.0);
                    assert!(privacy.delta.unwrap() <= 0.1 / records as f64 || records < 100_000);
                }
            }
        }
    }

    #[test]
    fn what_was_given_stays() {
        let (mut privacy, mut train) = (PrivacyParams::default(), TrainParams::default());
        (privacy.clip_norm, privacy.delta) = (Some(0.5), Some(1e-7));
        (train.batch, train.epochs, train.learning_rate) = (Some(64), Some(3), Some(1.0));
        complete(&mut privacy, &mut train, 1000, 4);
        assert_eq!((privacy.clip_norm, privacy.delta), (Some(0.5), Some(1e-7)));
        assert_eq!((train.batch, train.epochs, train.steps), (Some(64), Some(3), None));
        assert_eq!(train.learning_rate, Some(1.0));
    }
}
