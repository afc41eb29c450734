//! What the certified polar mechanism does to a direction: DP's noise times a/L.
//!
//! y = u + (Cσ/L)·z is the direction of s + (a/L)·Cσ·z, so every formula for DP holds with noise that
//! is a/L larger, L = a − C(tσ + 1) where z₀ = 0. The ratio tends to 1 as a/C grows: DP is the limit.
//! In GeoDP's terms it is a bounding factor β = C·B/(L·π·√(d+2)).

use super::{dp_direction_mse, not_negative};
use crate::Error;
use crate::real::{Real, check_gradient};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// A step of the certified polar mechanism, seen from a clipped mean gradient g.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PolarStep {
    /// a/L: the direction's noise over DP's.
    pub noise_ratio: f64,
    /// E‖θ* − θ‖².
    pub direction_mse: f64,
    /// The β at which GeoDP's noise on angles would be as large as the chord's noise.
    pub effective_beta: f64,
}

/// The expected step for a mean gradient over B records clipped at C; `None` where the radius
/// a − C(tσ + 1) is below κ·C and no direction would be released.
///
/// # Errors
/// Fewer than two coordinates, values that are not finite, C, σ, t or κ negative, B = 0.
pub fn polar_step<R: Real>(
    mean_gradient: &[R],
    clip_norm: f64,
    noise_multiplier: f64,
    batch: u64,
    params: &crate::PolarParams,
) -> Result<Option<PolarStep>, Error> {
    check_gradient(mean_gradient, 2)?;
    for (what, value) in [
        ("the clipping threshold", clip_norm),
        ("the noise multiplier", noise_multiplier),
        ("the margin t", params.margin),
        ("the least radius κ", params.least_radius),
    ] {
        not_negative(what, value)?;
    }
    if batch == 0 {
        return Err(Error::Batch);
    }
    let batch = batch as f64;
    let norm = mean_gradient.iter().map(|g| g.to_f64().powi(2)).sum::<f64>().sqrt() * batch;
    let radius = norm - clip_norm * (params.margin * noise_multiplier + 1.0);
    if radius <= 0.0 || radius < params.least_radius * clip_norm {
        return Ok(None);
    }
    let noise_ratio = norm / radius;
    let coordinate_std = clip_norm * noise_multiplier / batch * noise_ratio;
    Ok(Some(PolarStep {
        noise_ratio,
        direction_mse: dp_direction_mse(mean_gradient, coordinate_std)?,
        effective_beta: clip_norm * batch
            / (radius * PI * ((mean_gradient.len() + 2) as f64).sqrt()),
    }))
}
