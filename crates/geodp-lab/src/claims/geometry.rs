//! Claims 1 to 5: what perturbation does to directions.

use super::evidence::{DirectionPoint, Evidence};
use super::judge::{Judged, Verdict};
use geodp_report::format::{percent, significant};

/// Standard deviations beyond which a bias is no accident (5.7e-7 by chance).
const SCORE: f64 = 5.0;
/// Points with β this close to β* are not judged: expected values there are within their error.
const NEAR: f64 = 0.9;
/// A direction error is reduced if it falls below this share.
const REDUCED: f64 = 0.9;

pub(super) fn lemma1(evidence: &Evidence) -> Judged {
    let all = &evidence.directions;
    let exists = all.iter().all(|p| p.beta_star > 0.0);
    let below: Vec<_> = all.iter().filter(|p| p.beta < NEAR * p.beta_star).collect();
    let (won, of) = (below.iter().filter(|p| p.geodp < p.dp).count(), below.len());
    let (low, high) = all
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(l, h), p| (l.min(p.beta_star), h.max(p.beta_star)));
    Judged {
        number: 1,
        claim: "There is always a β at which GeoDP’s direction MSE is below DP’s (Lemma 1).",
        rule: "Holds if the analysis gives a crossing β* > 0 at every (d, B, σ) measured, and GeoDP’s \
               mean direction error is below DP’s at every point measured with β < 0.9·β*.",
        verdict: match (won, of) {
            (_, 0) => Verdict::NotRun("fig3"),
            (won, of) if won == of && exists => Verdict::Holds,
            (0, _) => Verdict::DoesNotHold,
            (won, of) => Verdict::Depends(format!("it is so at {won} of {of} points below β*")),
        },
        finding: format!(
            "β* lies between {} and {}; below it GeoDP has the smaller direction error at {won} of \
             {of} points. A smaller β means less noise, at the price that Claim 9 measures.",
            significant(low, 2),
            significant(high, 2)
        ),
        figure: "fig4a",
    }
}

pub(super) fn unbiased(evidence: &Evidence) -> Judged {
    let (verdict, finding) = match &evidence.bias {
        None => (Verdict::NotRun("claims"), String::new()),
        Some(b) => {
            let (dp, geodp) = (b.dp_score > SCORE, b.geodp_score.abs() <= SCORE);
            let verdict = match (dp, geodp) {
                (true, true) => Verdict::Holds,
                (false, false) => Verdict::DoesNotHold,
                (true, false) => Verdict::Depends("both are biased".into()),
                (false, true) => Verdict::Depends("neither is biased".into()),
            };
            let finding = format!(
                "Over {} perturbations, angle errors are {} standard deviations from unbiased under \
                 DP ({} of its direction error is squared bias) and {} under GeoDP. Of the released \
                 gradient itself the opposite is true: its mean, along the clean gradient, is {} of \
                 it under DP and {} under GeoDP.",
                b.repeats,
                significant(b.dp_score, 3),
                percent(b.dp_bias_share),
                significant(b.geodp_score, 2),
                significant(b.dp_projection, 3),
                significant(b.geodp_projection, 3)
            );
            (verdict, finding)
        }
    };
    Judged {
        number: 2,
        claim: "GeoDP’s direction noise is unbiased; DP’s is biased.",
        rule: "Holds if the angles’ mean errors, taken together, are beyond 5 standard deviations of \
               zero under DP and within them under GeoDP (σ = 8, B = 4096, β = 0.1).",
        verdict,
        finding,
        figure: "fig1a",
    }
}

pub(super) fn knobs(evidence: &Evidence) -> Judged {
    let (verdict, finding) = match &evidence.knobs {
        None => (Verdict::NotRun("claims"), String::new()),
        Some(k) => {
            let change = |points: &[(f64, f64)]| {
                let errors = points.iter().map(|p| p.1);
                let (low, high) =
                    errors.fold((f64::MAX, 0.0_f64), |(l, h), e| (l.min(e), h.max(e)));
                (low, high, low < REDUCED * high)
            };
            let knobs = [
                ("C", change(&k.clip_norm)),
                ("η", change(&k.learning_rate)),
                ("B", change(&k.batch)),
            ];
            let name = |reduces: bool| {
                let chosen = knobs.iter().filter(|(_, (_, _, r))| *r == reduces);
                chosen.map(|(name, _)| *name).collect::<Vec<_>>()
            };
            let (reducing, not) = (name(true), name(false));
            let verdict = match (reducing.len(), not.len()) {
                (0, _) => Verdict::Holds,
                (_, 0) => Verdict::DoesNotHold,
                _ => Verdict::Depends(format!(
                    "true of {}, not of {}",
                    not.join(" and "),
                    reducing.join(" and ")
                )),
            };
            let ranges = knobs.map(|(name, (low, high, _))| {
                format!("{name}: {} to {}", significant(low, 3), significant(high, 3))
            });
            (verdict, format!("DP’s mean direction error over {}.", ranges.join("; over ")))
        }
    };
    Judged {
        number: 3,
        claim: "Clipping, learning rate and batch size do not reduce DP’s direction error \
                (Corollary 2).",
        rule: "A knob reduces it if the smallest error over C = 0.01…10, η = 0.01…10 or B = 512…16384 \
               is below 90 % of the largest (σ = 1). Holds if none does.",
        verdict,
        finding,
        figure: "fig3g",
    }
}

pub(super) fn theorem1(evidence: &Evidence) -> Judged {
    let (verdict, finding) = match &evidence.identity {
        None => (Verdict::NotRun("claims"), String::new()),
        Some(i) => {
            let exact = i.worst_gap_in_roundings < 1000.0;
            let last = i.item_b_share.last().map_or(0.0, |(_, share)| *share);
            let verdict = match (exact, last > 0.99) {
                (true, true) => Verdict::Holds,
                (true, false) => {
                    Verdict::Depends("the identity holds, Item B does not remain".into())
                }
                _ => Verdict::DoesNotHold,
            };
            let shares = i
                .item_b_share
                .iter()
                .map(|(rate, share)| format!("{} at η = {rate}", percent(*share)));
            let finding = format!(
                "Over {} steps, ED and η²A + 2ηB differ by at most {} roundings of ME. Item B’s share \
                 of the two: {}.",
                i.trials,
                significant(i.worst_gap_in_roundings, 2),
                shares.collect::<Vec<_>>().join(", ")
            );
            (verdict, finding)
        }
    };
    Judged {
        number: 4,
        claim: "The identity of Theorem 1 holds exactly; Item B is what tuning cannot remove.",
        rule: "Holds if ED equals η²A + 2ηB to rounding (1000 units of 2⁻⁵²·ME over sums of thousands \
               of terms) and Item B is over 99 % of the two at the smallest η.",
        verdict,
        finding,
        figure: "",
    }
}

/// Whether the paper says that GeoDP loses at this point of panel a, d or g.
fn paper_says_it_loses(letter: char, p: &DirectionPoint) -> bool {
    match letter {
        'a' => p.sigma > 1.0,
        'd' => p.dim > 2000,
        _ => p.batch < 8192,
    }
}

pub(super) fn losing(evidence: &Evidence) -> Judged {
    let (mut differing, mut surprises) = (0, Vec::new());
    let mut loses_at_extreme = !evidence.at_beta_one.is_empty();
    let (mut points, mut loses) = (0, 0);
    for (letter, panel) in &evidence.at_beta_one {
        let size = |p: &DirectionPoint| p.sigma * p.dim as f64 / p.batch as f64;
        let extreme = panel.iter().max_by(|a, b| size(a).total_cmp(&size(b)));
        loses_at_extreme &= extreme.is_some_and(|p| p.geodp > p.dp);
        points += panel.len();
        loses += panel.iter().filter(|p| p.geodp > p.dp).count();
        for (word, lost) in [("loses", true), ("wins", false)] {
            let surprising = |p: &&DirectionPoint| {
                (p.geodp > p.dp) == lost && paper_says_it_loses(*letter, p) != lost
            };
            let (name, value): (&str, fn(&DirectionPoint) -> String) = match letter {
                'a' => ("σ", |p| p.sigma.to_string()),
                'd' => ("d", |p| p.dim.to_string()),
                _ => ("B", |p| p.batch.to_string()),
            };
            let at: Vec<String> = panel.iter().filter(surprising).map(value).collect();
            differing += at.len();
            if !at.is_empty() {
                let at = at.join(", ");
                surprises.push(format!("in 3{letter} GeoDP {word} at {name} = {at}"));
            }
        }
    }
    Judged {
        number: 5,
        claim: "With β = 1, GeoDP loses at large σ·d/B (σ > 1 in 3a, d > 2000 in 3d, B < 8192 in 3g).",
        rule: "Holds if GeoDP’s mean direction error is above DP’s exactly at those points; depends if \
               it is above DP’s at the largest σ·d/B of each panel but other points differ.",
        verdict: match (points, loses_at_extreme, differing == 0) {
            (0, _, _) => Verdict::NotRun("fig3"),
            (_, _, true) => Verdict::Holds,
            (_, true, false) if loses == points => {
                Verdict::Depends("GeoDP loses at every point, at small σ·d/B as well".into())
            }
            (_, true, false) => Verdict::Depends("on where the threshold is".into()),
            _ => Verdict::DoesNotHold,
        },
        finding: if differing == 0 {
            format!("All {points} points are as the paper says.")
        } else {
            format!(
                "{} of {points} points are as the paper says; {}.",
                points - differing,
                surprises.join("; ")
            )
        },
        figure: "fig3a",
    }
}
