//! Every verdict follows its numbers: turned round, they turn it round.

use geodp_lab::claims::accuracy::Difference;
use geodp_lab::claims::checks::{Bias, Identity, Knobs};
use geodp_lab::claims::evidence::{DirectionPoint, Evidence, LogisticLosses, PrivacyRow};
use geodp_lab::claims::judge::{Verdict, judge};
use geodp_lab::logistic::curves::Protocol;
use geodp_lab::runtime::Times;

fn verdict(evidence: &Evidence, number: u8) -> Verdict {
    let all = judge(evidence);
    assert_eq!(all.iter().map(|j| j.number).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
    all.into_iter().find(|j| j.number == number).unwrap().verdict
}

fn depends(verdict: Verdict, on: &str) {
    assert!(matches!(&verdict, Verdict::Depends(text) if text.contains(on)), "{verdict:?}");
}

fn point(sigma: f64, dim: usize, batch: u64, beta: f64, geodp: f64) -> DirectionPoint {
    DirectionPoint { dim, batch, sigma, beta, dp: 1.0, geodp, beta_star: 0.3 }
}

#[test]
fn without_numbers_nothing_is_judged() {
    for claim in judge(&Evidence::default()) {
        assert!(matches!(claim.verdict, Verdict::NotRun(_)), "claim {}", claim.number);
    }
}

#[test]
fn claim_1_is_judged_below_the_crossing() {
    let mut evidence = Evidence {
        directions: vec![
            point(1.0, 500, 512, 1.0, 2.0),
            point(1.0, 500, 512, 0.1, 0.5),
            point(8.0, 500, 512, 0.2, 0.9),
        ],
        ..Default::default()
    };
    assert_eq!(verdict(&evidence, 1), Verdict::Holds);
    evidence.directions[2].geodp = 1.1;
    depends(verdict(&evidence, 1), "1 of 2");
    evidence.directions[1].geodp = 1.1;
    assert_eq!(verdict(&evidence, 1), Verdict::DoesNotHold);
    evidence.directions.iter_mut().for_each(|p| p.geodp = 0.5);
    evidence.directions[0].beta_star = 0.0;
    depends(verdict(&evidence, 1), "2 of 2");
}

#[test]
fn claim_2_wants_bias_in_dp_alone() {
    let bias = Bias {
        dp_score: 300.0,
        geodp_score: -0.5,
        dp_bias_share: 0.4,
        geodp_bias_share: 0.0,
        dp_projection: 1.0,
        geodp_projection: 0.9,
        repeats: 100,
    };
    let with = |dp_score, geodp_score| Evidence {
        bias: Some(Bias { dp_score, geodp_score, ..bias }),
        ..Default::default()
    };
    assert_eq!(verdict(&with(300.0, -0.5), 2), Verdict::Holds);
    assert_eq!(verdict(&with(-0.5, 300.0), 2), Verdict::DoesNotHold);
    depends(verdict(&with(300.0, 300.0), 2), "both");
    depends(verdict(&with(0.1, 0.1), 2), "neither");
}

#[test]
fn claim_3_names_the_knobs_that_help() {
    let with = |c: f64, eta: f64, b: f64| Evidence {
        knobs: Some(Knobs {
            clip_norm: vec![(0.1, 1.0), (1.0, c)],
            learning_rate: vec![(0.1, 1.0), (1.0, eta)],
            batch: vec![(512.0, 1.0), (8192.0, b)],
        }),
        ..Default::default()
    };
    assert_eq!(verdict(&with(1.0, 1.0, 0.95), 3), Verdict::Holds);
    depends(verdict(&with(1.0, 1.0, 0.2), 3), "true of C and η, not of B");
    assert_eq!(verdict(&with(0.2, 0.2, 0.2), 3), Verdict::DoesNotHold);
}

#[test]
fn claim_4_wants_the_identity_and_item_b() {
    let with = |worst_gap_in_roundings, share| Evidence {
        identity: Some(Identity {
            worst_gap_in_roundings,
            item_b_share: vec![(1.0, 0.5), (0.001, share)],
            trials: 10,
        }),
        ..Default::default()
    };
    assert_eq!(verdict(&with(3.0, 0.999), 4), Verdict::Holds);
    depends(verdict(&with(3.0, 0.5), 4), "Item B");
    assert_eq!(verdict(&with(1e9, 0.999), 4), Verdict::DoesNotHold);
}

#[test]
fn claim_5_compares_every_point_with_the_papers_threshold() {
    let mut evidence = Evidence {
        at_beta_one: vec![
            ('a', vec![point(1.0, 5000, 2048, 1.0, 0.5), point(10.0, 5000, 2048, 1.0, 2.0)]),
            ('d', vec![point(8.0, 2000, 4096, 1.0, 0.5), point(8.0, 5000, 4096, 1.0, 2.0)]),
            ('g', vec![point(8.0, 10_000, 8192, 1.0, 0.5), point(8.0, 10_000, 512, 1.0, 2.0)]),
        ],
        ..Default::default()
    };
    assert_eq!(verdict(&evidence, 5), Verdict::Holds);
    evidence.at_beta_one[0].1[0].geodp = 2.0;
    depends(verdict(&evidence, 5), "threshold");
    evidence.at_beta_one.iter_mut().for_each(|(_, panel)| panel[0].geodp = 2.0);
    depends(verdict(&evidence, 5), "every point");
    evidence.at_beta_one[0].1[1].geodp = 0.5;
    assert_eq!(verdict(&evidence, 5), Verdict::DoesNotHold);
}

#[test]
fn claim_6_tells_protocols_apart() {
    let losses = |geodp: f64, small: f64| LogisticLosses {
        pairs: vec![("a".into(), 1.0, geodp), ("b".into(), 1.0, 0.5)],
        dp_small_sigma: (1.0, small),
    };
    let with = |released, fair| Evidence {
        logistic: vec![(Protocol::Released, released), (Protocol::Fair, fair)],
        ..Default::default()
    };
    assert_eq!(verdict(&with(losses(0.5, 1.0), losses(0.5, 1.0)), 6), Verdict::Holds);
    assert_eq!(verdict(&with(losses(0.5, 1.0), losses(1.5, 1.0)), 6), Verdict::ReleasedOnly);
    assert_eq!(verdict(&with(losses(0.5, 1.0), losses(0.5, 0.5)), 6), Verdict::ReleasedOnly);
    depends(verdict(&with(losses(1.5, 1.0), losses(0.5, 1.0)), 6), "1 of 2 settings under the rel");
    let lost = |losses: LogisticLosses| LogisticLosses {
        pairs: losses.pairs.into_iter().map(|(s, dp, _)| (s, dp, 1.5)).collect(),
        ..losses
    };
    let (released, fair) = (lost(losses(1.5, 1.0)), lost(losses(1.5, 1.0)));
    assert_eq!(verdict(&with(released, fair), 6), Verdict::DoesNotHold);
}

#[test]
fn claim_7_counts_columns_and_add_ons() {
    let difference = |add_on, points| Difference {
        table: "table2",
        sigma: 1.0,
        what: "x over y".into(),
        add_on,
        points,
        margin: 0.5,
    };
    let with = |a: f64, b: f64, add_on: f64| Evidence {
        accuracy: vec![difference(false, a), difference(false, b), difference(true, add_on)],
        ..Default::default()
    };
    assert_eq!(verdict(&with(2.0, 1.0, 0.6), 7), Verdict::Holds);
    depends(verdict(&with(2.0, 0.4, 0.6), 7), "1 of 2 columns, add-ons in 1 of 1");
    depends(verdict(&with(2.0, 1.0, -3.0), 7), "2 of 2 columns, add-ons in 0 of 1");
    assert_eq!(verdict(&with(-2.0, 0.4, 0.6), 7), Verdict::DoesNotHold);
}

#[test]
fn claim_8_wants_equal_slopes_and_a_larger_constant() {
    let with = |power: f64, factor: f64| Evidence {
        times: [20_000, 80_000, 320_000]
            .map(|dim| Times {
                dim,
                batch: 512,
                dp_microseconds: dim as f64,
                geodp_microseconds: factor * (dim as f64 / 320_000.0).powf(power) * 320_000.0,
                gradients: 500,
            })
            .to_vec(),
        ..Default::default()
    };
    assert_eq!(verdict(&with(1.0, 1.5), 8), Verdict::Holds);
    depends(verdict(&with(1.0, 0.9), 8), "same complexity");
    assert_eq!(verdict(&with(2.0, 1.5), 8), Verdict::DoesNotHold);
}

#[test]
fn claim_9_holds_measured_losses_against_certified_ones() {
    let row = |measured_largest| PrivacyRow {
        name: "β = 0.1".into(),
        published: true,
        dp_certified: 5.0,
        measured_largest,
        share_inside: 0.9,
    };
    let with = |a, b| Evidence { privacy: vec![row(a), row(b)], ..Default::default() };
    assert_eq!(verdict(&with(4.0, 5.0), 9), Verdict::Holds);
    depends(verdict(&with(4.0, 6.0), 9), "1 of 2");
    assert_eq!(verdict(&with(f64::INFINITY, 6.0), 9), Verdict::DoesNotHold);
}
