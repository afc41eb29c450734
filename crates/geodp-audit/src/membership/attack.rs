//! How each attack did, and which one counts.
//!
//! The strongest attack is the one that finds most members at 1 % false alarms, not the one of largest
//! AUC: an attack that names few members with certainty harms them, one that is right a little more
//! often than wrong about everybody does not (Carlini et al. 2022, section III). The best of several
//! attacks looks better than it is, so the limits of all of them hold together: each has its share of
//! 1 − [`CONFIDENCE`].

use super::{Evidence, Roc};
use crate::Error;
use serde::Serialize;

/// With this confidence all the limits of an audit hold together.
pub const CONFIDENCE: f64 = 0.95;

/// An attack and how it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// Its curve.
    pub roc: Roc,
    /// Limits of the share of members found at 1 % false alarms.
    pub tpr_at_1_percent_limits: (f64, f64),
    /// The same at 0.1 %.
    pub tpr_at_01_percent_limits: (f64, f64),
}

impl Evidence {
    /// All attacks on the audited records, of which the first `members` are members.
    ///
    /// # Errors
    /// Lists that do not fit; no members or no non-members.
    pub fn attacks(&self, members: usize) -> Result<Vec<Attack>, Error> {
        self.check()?;
        let scored = [
            ("loss", self.loss()),
            ("LiRA, online", self.lira_online()),
            ("LiRA, offline", self.lira_offline()),
            ("RMIA", self.rmia()),
        ];
        // Two rates of each attack are shown.
        let alpha = (1.0 - CONFIDENCE) / (2 * scored.len()) as f64;
        let attack = |(name, scores): (&'static str, Vec<f64>)| {
            let (of_members, of_others) = scores.split_at(members.min(scores.len()));
            let roc = Roc::new(of_members, of_others)?;
            Ok(Attack {
                name,
                tpr_at_1_percent_limits: roc.tpr_interval(roc.tpr_at_1_percent, alpha),
                tpr_at_01_percent_limits: roc.tpr_interval(roc.tpr_at_01_percent, alpha),
                roc,
            })
        };
        scored.into_iter().map(attack).collect()
    }
}

/// The attack that finds most members at 1 % false alarms; of equals, the one of larger AUC.
pub fn strongest(attacks: &[Attack]) -> Option<&Attack> {
    let rank = |attack: &Attack| (attack.roc.tpr_at_1_percent, attack.roc.auc);
    attacks.iter().max_by(|a, b| {
        let ((a_found, a_area), (b_found, b_area)) = (rank(a), rank(b));
        a_found.total_cmp(&b_found).then(a_area.total_cmp(&b_area))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attack(name: &'static str, members: &[f64], others: &[f64]) -> Attack {
        let roc = Roc::new(members, others).unwrap();
        let limits = (0.0, 1.0);
        Attack { name, roc, tpr_at_1_percent_limits: limits, tpr_at_01_percent_limits: limits }
    }

    /// One attack names a fifth of the members with certainty and is blind to the rest; the other is a
    /// little right about everybody. The second has the larger area, the first does the harm.
    #[test]
    fn certainty_about_few_beats_a_larger_area() {
        let others: Vec<f64> = (0..100).map(f64::from).collect();
        let certain: Vec<f64> =
            (0..100).map(|i| if i < 20 { 1000.0 } else { f64::from(i) - 20.0 }).collect();
        let vague: Vec<f64> = (0..100).map(|i| (f64::from(i) + 30.5).min(90.5)).collect();
        let both = [attack("certain", &certain, &others), attack("vague", &vague, &others)];
        assert!(both[0].roc.auc < both[1].roc.auc);
        assert_eq!(strongest(&both).unwrap().name, "certain");
        assert!(strongest(&[]).is_none());
    }
}
