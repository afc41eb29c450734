//! The section of a mechanism audit: the case where GeoDP keeps its published ε, and the case where
//! it does not.

use super::{claim_text, lower};
use crate::mechanism::{Audited, Batch, Case, Setting};
use geodp_account::Claim;
use geodp_report::{Axis, Bars, Callout, Role, Section, Table, Text, Tone, format};

fn name(case: &Case) -> String {
    let mechanism = match case.mechanism {
        Audited::Dp => "DP",
        Audited::Geodp => "GeoDP",
        Audited::GeodpCertified => "certified GeoDP",
    };
    let batch = match case.batch {
        Batch::Ordinary => "ordinary batch",
        Batch::Cancelling => "cancelling batch",
    };
    format!("{mechanism}, {batch}")
}

/// The claim a case is first held to.
fn first_claim(case: &Case) -> Option<&Claim> {
    case.claims.first()
}

/// All cases of one setting.
pub fn mechanism_section(setting: &Setting, cases: &[Case]) -> Section {
    let confidence = format::percent(1.0 - setting.significance);
    let mut section = Section::new("Mechanism audit").paragraph(format!(
        "Two mean gradients that differ by one record of norm C were released {} times each, and an \
         attacker told the releases apart. Ordinary batch: the mean is a tenth of C long, and the \
         record lies beside it. Cancelling batch: the other records cancel to C/2B, so the one \
         record decides the direction. One release, no sampling.",
        format::count(setting.repeats)
    ));
    let leaks: Vec<&Case> = cases.iter().filter(|case| case.refuted().next().is_some()).collect();
    for case in &leaks {
        let refuted: Vec<String> = case.refuted().map(claim_text).collect();
        section = section.callout(
            Callout::Warning,
            format!(
                "{}: ε is at least {} (audited, confidence {confidence}), above {}. The record moves \
                 the angles by {} rad; the noise was scaled for {} rad.",
                name(case),
                lower(case.bound.epsilon_lower),
                refuted.join(" and "),
                format::significant(case.moved_direction, 3),
                format::significant(case.assumed_direction, 3)
            ),
        );
    }
    let bars = Bars::new(
        "Audited ε beside claimed ε",
        Axis::linear(format!("ε at δ = {:e}", setting.delta)),
        cases.iter().map(name),
    )
    .group(
        "claimed: certified (DP, certified GeoDP), as published (GeoDP)",
        Role::Neutral,
        cases.iter().map(|case| first_claim(case).map_or(f64::NAN, Claim::upper)),
    )
    .group(
        format!("audited: at least, {confidence} confidence"),
        Role::GeoDp,
        cases.iter().map(|case| case.bound.epsilon_lower),
    );
    let mut table = Table::new([
        "case",
        "claims",
        "audited: at least",
        "this pair: at most",
        "verdict",
    ])
    .caption(
        "“This pair” is the ε of telling just these two gradients apart, computed from how far \
             the record moves what is noised.",
    );
    for case in cases {
        let verdict = if case.refuted().next().is_some() {
            Text::default().badge(Tone::Bad, "refuted")
        } else {
            Text::default().badge(Tone::Good, "not refuted")
        };
        let claims = case.claims.iter().map(claim_text).collect::<Vec<_>>().join(", ");
        table = table.row([
            Text::from(name(case)),
            claims.into(),
            lower(case.bound.epsilon_lower).into(),
            format::epsilon(case.epsilon_of_pair).into(),
            verdict,
        ]);
    }
    section
        .figure(
            &bars,
            "An audited bar longer than the claimed one refutes the claim. The longest bound that so \
             many releases can show is limited by their number.",
        )
        .table(table)
        .key_values([
            ("dimensions d", format::count(setting.dim as u64)),
            ("batch B", format::count(setting.batch)),
            ("clipping threshold C", setting.clip_norm.to_string()),
            ("noise multiplier σ", setting.noise_multiplier.to_string()),
            ("bounding factor β", setting.beta.to_string()),
            ("seed", setting.seed.to_string()),
        ])
}
