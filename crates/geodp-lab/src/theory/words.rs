//! The derivation in sentences, and what was found beside it.

use super::draw::{Points, spread};
use super::measure::{Geometry, MARGIN};
use geodp_report::{Section, Text, format};

/// A paragraph that opens with its subject.
fn said(subject: &str, text: impl Into<String>) -> Text {
    Text::default().strong(format!("{subject}. ")).plain(text)
}

/// What the figures stand on.
pub(super) fn derivation(section: Section) -> Section {
    section
        .paragraph(said(
            "DP’s noise in polar form",
            "Let g = ‖g‖·u be the clipped mean gradient of a batch. DP-SGD adds a normal of standard deviation \
             σC/B to every coordinate. Normals look the same in every basis, so take one that begins with u: the \
             noise is σC/B along u, which changes the length, and σC/B in each of the d − 1 dimensions across u, \
             which turn the direction by σC/(B‖g‖) each. Isotropic noise is a geometric mechanism: it perturbs \
             magnitude and direction separately, and independently.",
        ))
        .paragraph(said(
            "One record in polar form",
            "A record moves g by at most C/B. Along u it changes the length by C/B; across u it turns the direction \
             by C/(B‖g‖), and not both at once, by the law of cosines. So DP’s noise on the direction is σ times the \
             direction’s own local sensitivity, in each of the dimensions in which a record could turn it. Nothing \
             is left over that a cleverer treatment of the direction could save.",
        ))
        .paragraph(said(
            "Where GeoDP crosses DP",
            "GeoDP adds σ·β·π√(d+2)/B to each of d − 1 angles. An angle far back in the list turns only the part of \
             the gradient behind it, r_z of its length, so the whole is turned by √W·σ·β·π√(d+2)/B with \
             W = Σ r_z²/‖g‖² (about d/2 where the gradient is spread evenly). DP turns it by √(d−1)·σC/(B‖g‖). The \
             two are equal at β* = √((d−1)/W) · C/(π√(d+2)·‖g‖). σ and B have cancelled: below β* GeoDP keeps the \
             direction better at any noise, above it DP does, and β* grows as gradients shrink.",
        ))
        .paragraph(said(
            "What any direction mechanism must add",
            "For every tangent t there is a neighbour whose mean is turned by C/(B‖g‖) towards t. Noise that is to hide \
             it with multiplier σ needs a standard deviation of σC/(B‖g‖) towards t, for every t: DP’s noise. GeoDP’s \
             assumed sensitivity √(d+2)βπ/B covers that turn only if β ≥ C/(π√(d+2)‖g‖), which is β* but for the factor \
             √((d−1)/W) ≈ √2, and it covers the angles of such a record only at a larger β still. So where GeoDP’s \
             direction is clearly better than DP’s at equal σ, its noise no longer covers one record. That \
             is the price the per-record measurements of the tables find.",
        ))
        .paragraph(said(
            "The certified mechanism",
            format!(
                "Certified GeoDP puts noise Cσ on the chord of a circle whose radius L = m̃ − C(tσ + 1) is public \
                 (t = {MARGIN} here) and below the private a = B‖g‖. Its direction moves by DP’s σC/(B‖g‖) times a/L, \
                 always more than DP’s and hardly more while a is hundreds of C."
            ),
        ))
        .paragraph(said(
            "Splitting the budget",
            "Let the magnitude have multiplier σ_m and the direction σ_d. A record at angle φ to u costs \
             μ² = cos²φ/σ_m² + sin²φ/σ_d² (the law of cosines to first order, and exactly its two ends: φ = 0 changes the \
             length alone, φ = 90° the direction alone). The worst record chooses φ, so μ = 1/min(σ_m, σ_d): the larger \
             of the two multipliers is noise that buys nothing, for every d, B, C and at every moment of a \
             training. No split helps; equal multipliers are the only ones without waste, and they are DP-SGD. It \
             would take records that cannot turn the direction as far as they can lengthen it, that is, another \
             clipping rule and not another noise.",
        ))
}

/// What was measured, in a sentence.
pub(super) fn finding(points: &Points<'_>) -> String {
    let all = || {
        let each = points.iter().flat_map(|(_, found)| found.points.iter().map(|(_, g)| g));
        each.filter(|g| g.is_first_order())
    };
    let range = |pick: fn(&Geometry) -> Option<f64>| spread(all().filter_map(pick));
    let Some((low, high)) = range(|g| Some(g.tangent.measured / g.tangent.expected)) else {
        return "Not run yet.".to_owned();
    };
    let shown = |x: f64| format::significant(x, 3);
    let mut text = format!(
        "Measured over expected: the direction’s noise under DP {} to {}",
        shown(low),
        shown(high)
    );
    if let Some((low, high)) = range(|g| Some(g.crossing.measured / g.crossing.expected)) {
        text += &format!(", β* {} to {}", shown(low), shown(high));
    }
    if let Some((low, high)) = range(|g| g.certified.map(|c| c.measured / c.expected)) {
        text += &format!(", certified GeoDP’s a/L {} to {}", shown(low), shown(high));
    }
    text += &format!(
        ", in {} means whose direction moves by less than 0.1 rad a dimension.",
        all().count()
    );
    let over_sensitivity = |g: &Geometry| {
        let local = 1.0 / (g.setting.batch as f64 * g.mean_norm_over_clip);
        g.largest_turn.map(|turn| turn.rotation / local)
    };
    if let Some((low, high)) = spread(all().filter_map(over_sensitivity)) {
        text += &format!(
            " Along the trainings the record that turns the mean most turns it by {} to {} times C/(B‖g‖).",
            shown(low),
            shown(high)
        );
    }
    text
}
