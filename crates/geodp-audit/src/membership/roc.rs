//! The receiver operating characteristic of a score, and what is read off it.

use crate::Error;
use crate::binomial::{lower_limit, upper_limit};
use serde::{Deserialize, Serialize};

/// How well a score tells members from non-members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Roc {
    /// (false positive rate, true positive rate), from (0, 0) to (1, 1), one for each distinct score.
    pub points: Vec<(f64, f64)>,
    /// Area under the curve: the chance that a member scores above a non-member, ties halved.
    pub auc: f64,
    /// Largest true positive rate at a false positive rate of at most 1 %.
    pub tpr_at_1_percent: f64,
    /// The same at 0.1 %.
    pub tpr_at_01_percent: f64,
    /// Members scored.
    pub members: u64,
}

impl Roc {
    /// Of scores that are higher where membership is likelier.
    ///
    /// # Errors
    /// No members, no non-members, or a score that is not a number.
    pub fn new(members: &[f64], non_members: &[f64]) -> Result<Self, Error> {
        for (what, scores) in [("member", members), ("non-member", non_members)] {
            if scores.is_empty() {
                let (name, range) = ("number of records on one side", "at least 1");
                return Err(Error::Parameter { name, range, found: 0.0 });
            }
            if let Some(index) = scores.iter().position(|s| s.is_nan()) {
                return Err(Error::Score { what, index, score: scores[index] });
            }
        }
        let mut all: Vec<(f64, bool)> = members.iter().map(|s| (*s, true)).collect();
        all.extend(non_members.iter().map(|s| (*s, false)));
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (positives, negatives) = (members.len() as f64, non_members.len() as f64);
        let (mut hits, mut alarms, mut auc) = (0.0, 0.0, 0.0);
        let mut points = vec![(0.0, 0.0)];
        for group in all.chunk_by(|a, b| a.0 == b.0) {
            let of_group = group.iter().filter(|(_, member)| *member).count() as f64;
            let others = group.len() as f64 - of_group;
            auc += others * (hits + 0.5 * of_group);
            hits += of_group;
            alarms += others;
            points.push((alarms / negatives, hits / positives));
        }
        let at = |most: f64| {
            points.iter().filter(|(fpr, _)| *fpr <= most).map(|(_, tpr)| *tpr).fold(0.0, f64::max)
        };
        Ok(Self {
            auc: auc / (positives * negatives),
            tpr_at_1_percent: at(0.01),
            tpr_at_01_percent: at(0.001),
            points,
            members: members.len() as u64,
        })
    }

    /// The limits of Clopper and Pearson for a true positive rate of this curve, each with confidence
    /// 1 − `alpha`/2: how far the share of members found may be off because so few were tried. The
    /// threshold is taken as it was found.
    pub fn tpr_interval(&self, tpr: f64, alpha: f64) -> (f64, f64) {
        let found = (tpr * self.members as f64).round() as u64;
        let (low, high) = (lower_limit, upper_limit);
        (low(self.members, found, 0.5 * alpha), high(self.members, found, 0.5 * alpha))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn corner_cases() {
        let perfect = Roc::new(&[2.0, 3.0], &[0.0, 1.0]).unwrap();
        assert_eq!((perfect.auc, perfect.tpr_at_01_percent), (1.0, 1.0));
        let blind = Roc::new(&[1.0; 5], &[1.0; 7]).unwrap();
        assert_eq!((blind.auc, blind.tpr_at_1_percent), (0.5, 0.0));
        assert_eq!(blind.points, [(0.0, 0.0), (1.0, 1.0)]);
        let wrong = Roc::new(&[0.0], &[1.0]).unwrap();
        assert_eq!(wrong.auc, 0.0);
        assert!(Roc::new(&[], &[1.0]).is_err());
        assert!(Roc::new(&[f64::NAN], &[1.0]).is_err());
    }

    #[test]
    fn low_false_positive_rates_are_read_conservatively() {
        let non_members: Vec<f64> = (0..1000).map(f64::from).collect();
        let members: Vec<f64> = (0..1000).map(|i| f64::from(i) + 15.5).collect();
        let roc = Roc::new(&members, &non_members).unwrap();
        // One false alarm is allowed at 0.1 %, ten at 1 %.
        assert!((roc.tpr_at_01_percent - 0.017).abs() < 1e-9, "{}", roc.tpr_at_01_percent);
        assert!((roc.tpr_at_1_percent - 0.026).abs() < 1e-9, "{}", roc.tpr_at_1_percent);
    }

    /// 37 of 100: the limits are those of `tests/golden/make_golden.py`.
    #[test]
    fn rates_come_with_their_limits() {
        let members: Vec<f64> = (0..100).map(|i| f64::from(i < 37)).collect();
        let roc = Roc::new(&members, &[0.0; 200]).unwrap();
        assert_eq!(roc.tpr_at_1_percent, 0.37);
        let (low, high) = roc.tpr_interval(roc.tpr_at_1_percent, 0.05);
        assert!((low - 0.275_566_579_614_55).abs() < 1e-12);
        assert!((high - 0.472_351_640_551_68).abs() < 1e-12);
        let (low, high) = roc.tpr_interval(0.0, 0.05);
        assert!(low == 0.0 && high > 0.03);
    }

    proptest! {
        #[test]
        fn the_area_is_the_share_of_pairs(
            members in prop::collection::vec(0i32..20, 1..40),
            others in prop::collection::vec(0i32..20, 1..40),
        ) {
            let mut wins = 0.0;
            for m in &members {
                for o in &others {
                    wins += if m > o { 1.0 } else if m == o { 0.5 } else { 0.0 };
                }
            }
            let expected = wins / (members.len() * others.len()) as f64;
            let as_f64 = |v: &[i32]| v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let roc = Roc::new(&as_f64(&members), &as_f64(&others)).unwrap();
            prop_assert!((roc.auc - expected).abs() < 1e-12);
            let trapezoids: f64 = roc.points.windows(2)
                .map(|w| (w[1].0 - w[0].0) * (w[1].1 + w[0].1) / 2.0).sum();
            prop_assert!((trapezoids - expected).abs() < 1e-12);
        }
    }
}
