//! The paper's quantities about one step: model efficiency, direction errors, where they cross.
//!
//! - ME = ‖w − w⋆‖², ED = ME(private step) − ME(plain step) = η²·A + 2η·B with Item A =
//!   ‖g*‖² − ‖g‖² and Item B = ⟨g* − g, w⋆ − w⟩ (Theorem 1; an identity).
//! - DP's direction error: with noise of standard deviation s on every coordinate, the tail behind
//!   angle z grows from r² to about r² + k·s² (k coordinates). This biases angles towards π/2; the
//!   spread of angle z is s/√(g_z² + r² + k·s²). Accurate for large k; the last angle is unbiased.
//! - GeoDP's direction error: (d − 1)·(d + 2)·(β·π·σ/B)², unbiased.
//! - The certified polar mechanism's: DP's with noise a/L times as large ([`polar_step`]).

mod polar;

pub use polar::{PolarStep, polar_step};

use crate::Error;
use crate::perturb::geometric::angle_std;
use crate::real::{Real, check_gradient};
use std::f64::consts::PI;

/// ME: the squared distance of a model to the optimum.
///
/// # Errors
/// Vectors of different length, or values that are not finite.
pub fn model_efficiency<R: Real>(weights: &[R], optimum: &[R]) -> Result<f64, Error> {
    check_gradient(weights, 1)?;
    check_gradient(optimum, 1)?;
    crate::sphere::squared_gradient_error(weights, optimum)
}

/// Theorem 1's two parts of the efficiency difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EfficiencyDifference {
    /// ‖g*‖² − ‖g‖²: vanishes with small learning rates and thresholds.
    pub item_a: f64,
    /// ⟨g* − g, w⋆ − w⟩: what tuning cannot remove.
    pub item_b: f64,
    /// η²·A + 2η·B.
    pub total: f64,
}

/// ED of a step from `weights` with the private gradient instead of the plain one.
///
/// # Errors
/// Vectors of different length, values that are not finite, a learning rate that is negative.
pub fn efficiency_difference<R: Real>(
    learning_rate: f64,
    weights: &[R],
    optimum: &[R],
    gradient: &[R],
    private_gradient: &[R],
) -> Result<EfficiencyDifference, Error> {
    not_negative("the learning rate", learning_rate)?;
    let vectors =
        [("the optimum", optimum), ("the gradient", gradient), ("the noise", private_gradient)];
    check_gradient(weights, 1)?;
    for (what, vector) in vectors {
        check_gradient(vector, 1)?;
        if vector.len() != weights.len() {
            let (expected, actual) = (weights.len(), vector.len());
            return Err(Error::LengthMismatch { what, expected, actual });
        }
    }
    let (mut item_a, mut item_b) = (0.0, 0.0);
    for i in 0..weights.len() {
        let (plain, private) = (gradient[i].to_f64(), private_gradient[i].to_f64());
        // (a − b)(a + b) instead of a² − b²: small noise keeps its digits.
        item_a += (private - plain) * (private + plain);
        item_b += (private - plain) * (optimum[i].to_f64() - weights[i].to_f64());
    }
    let total = learning_rate * learning_rate * item_a + 2.0 * learning_rate * item_b;
    Ok(EfficiencyDifference { item_a, item_b, total })
}

/// Expected error of one angle under DP noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AngleError {
    /// E\[θ*\] − θ, in radians.
    pub bias: f64,
    /// Var\[θ*\].
    pub variance: f64,
}

/// DP's bias and variance for every angle of a gradient, with noise of standard deviation
/// `coordinate_std` on every coordinate (C·σ/B).
///
/// # Errors
/// Fewer than two coordinates, values that are not finite, a negative standard deviation.
pub fn dp_angle_errors<R: Real>(
    gradient: &[R],
    coordinate_std: f64,
) -> Result<Vec<AngleError>, Error> {
    check_gradient(gradient, 2)?;
    not_negative("the noise's standard deviation", coordinate_std)?;
    let noise = coordinate_std * coordinate_std;
    let last_angle = gradient.len() - 2;
    let mut tail = gradient[last_angle + 1].to_f64().powi(2);
    let mut errors = vec![AngleError { bias: 0.0, variance: 0.0 }; last_angle + 1];
    for z in (0..=last_angle).rev() {
        let g = gradient[z].to_f64();
        let noisy_tail = tail + (gradient.len() - 1 - z) as f64 * noise;
        let size = g * g + noisy_tail;
        // No spread on a circle exceeds that of the uniform distribution.
        let variance = if size > 0.0 { (noise / size).min(PI * PI / 3.0) } else { 0.0 };
        let bias = if z == last_angle || size == 0.0 {
            0.0
        } else {
            let curvature = noise * g * noisy_tail.sqrt() / (size * size);
            noisy_tail.sqrt().atan2(g) - tail.sqrt().atan2(g) + curvature
        };
        errors[z] = AngleError { bias, variance };
        tail += g * g;
    }
    Ok(errors)
}

/// DP's expected ‖θ* − θ‖² for one gradient: the sum of squared biases and variances.
///
/// # Errors
/// As [`dp_angle_errors`].
pub fn dp_direction_mse<R: Real>(gradient: &[R], coordinate_std: f64) -> Result<f64, Error> {
    let errors = dp_angle_errors(gradient, coordinate_std)?;
    Ok(errors.iter().map(|e| e.bias * e.bias + e.variance).sum())
}

/// GeoDP's expected ‖θ* − θ‖²: d − 1 angles, each with variance `angle_std`².
pub fn geodp_direction_mse(dim: usize, angle_std: f64) -> f64 {
    dim.saturating_sub(1) as f64 * angle_std * angle_std
}

/// The bounding factors at which GeoDP's direction error equals DP's, for one gradient at the
/// same σ, C and B. Below them GeoDP keeps the direction better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossingBeta {
    /// In the paper's measure, the sum of squared angle errors.
    pub by_angles: f64,
    /// In the rotation that the gradient as a whole suffers (what its cosine shows), to first
    /// order: an angle deep in the list turns only the small tail behind it.
    pub by_rotation: f64,
}

/// β* for a clipped mean gradient. May exceed 1, where GeoDP wins at every β.
///
/// # Errors
/// Fewer than two coordinates, values that are not finite, a zero gradient, σ or C not positive,
/// B = 0.
pub fn crossing_beta<R: Real>(
    gradient: &[R],
    clip_norm: f64,
    noise_multiplier: f64,
    batch: u64,
) -> Result<CrossingBeta, Error> {
    check_gradient(gradient, 2)?;
    let clip_norm = crate::clip::ClipNorm::new(clip_norm)?.get();
    if !(noise_multiplier.is_finite() && noise_multiplier > 0.0) {
        return Err(Error::NoiseMultiplier(noise_multiplier));
    }
    if batch == 0 {
        return Err(Error::Batch);
    }
    let dim = gradient.len() as f64;
    let coordinate_std = clip_norm * noise_multiplier / batch as f64;
    // Σ_z r_z²/r_1²: how much of the gradient each angle turns. Coordinate z is in tails 1 … z.
    let (mut squares, mut turned) = (0.0, 0.0);
    for (z, g) in gradient.iter().enumerate() {
        let square = g.to_f64().powi(2);
        squares += square;
        turned += square * (z + 1).min(gradient.len() - 1) as f64;
    }
    if squares == 0.0 {
        return Err(Error::Negative {
            what: "the gradient's norm (it has no direction)",
            value: 0.0,
        });
    }
    let angle_std_at_one = angle_std(gradient.len(), noise_multiplier, batch as f64, 1.0);
    let dp_angles = dp_direction_mse(gradient, coordinate_std)?;
    let dp_rotation = (dim - 1.0) * coordinate_std * coordinate_std / squares;
    Ok(CrossingBeta {
        by_angles: (dp_angles / (dim - 1.0)).sqrt() / angle_std_at_one,
        by_rotation: (dp_rotation / (turned / squares)).sqrt() / angle_std_at_one,
    })
}

/// Bounds on δ′, the probability that the averaged direction leaves GeoDP's privacy region.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeltaPrime {
    /// 1 − Π_z P(|θ̄_z − E θ_z| ≤ region/2) in the paper's Gaussian model.
    pub lower: f64,
    /// 1 − β.
    pub upper: f64,
}

/// The lemma's bounds on δ′ from the spread of the records' own angles.
///
/// `angle_variances` holds Var\[θ_jz\] over records j for each angle z; the model takes the
/// averaged angle as Gaussian with variance Var/B (the B² printed in Theorems 2 and 3 is a slip).
/// The region is βπ wide (2βπ for the last angle) around the mean direction. The model's value
/// may exceed 1 − β, because the paper's upper bound assumes directions spread evenly; both are
/// given as they come.
///
/// # Errors
/// No angles, a negative or non-finite variance, B = 0, β outside (0, 1].
pub fn delta_prime(angle_variances: &[f64], batch: u64, beta: f64) -> Result<DeltaPrime, Error> {
    if angle_variances.is_empty() {
        return Err(Error::TooFewDimensions(1));
    }
    if batch == 0 {
        return Err(Error::Batch);
    }
    if !(beta > 0.0 && beta <= 1.0) {
        return Err(Error::Beta(beta));
    }
    let last = angle_variances.len() - 1;
    let mut log_inside = 0.0;
    for (z, variance) in angle_variances.iter().enumerate() {
        not_negative("an angle's variance", *variance)?;
        let half_width = if z == last { beta * PI } else { beta * PI / 2.0 };
        let std = (variance / batch as f64).sqrt();
        // P(|x| > h) = erfc(h / (s·√2)); ln(1 − p) keeps tiny p.
        log_inside += f64::ln_1p(-libm::erfc(half_width / (std * std::f64::consts::SQRT_2)));
    }
    Ok(DeltaPrime { lower: -log_inside.exp_m1(), upper: 1.0 - beta })
}

fn not_negative(what: &'static str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(Error::Negative { what, value }) }
}
