//! Hyper-spherical coordinates: g ↔ (‖g‖, θ), the textbook way, in f64.
//!
//! θ_z = atan2(√(Σ_{i > z} g_i²), g_z) for z ≤ d − 2, θ_{d−1} = atan2(g_d, g_{d−1}), and back:
//! g_z = ‖g‖·Π_{i < z} sin θ_i·cos θ_z, g_d = ‖g‖·Π sin θ_i. Shapes: d coordinates, d − 1 angles.
//!
//! This is the reference the fast route is tested against, so it favours plainness over speed:
//! suffix norms by `hypot`, which neither overflows nor underflows. atan2(0, 0) is taken as 0, so
//! the zero vector has magnitude 0 and all angles 0, i.e. direction (1, 0, …, 0).

use crate::Error;
use crate::real::{Real, check_gradient};
use std::f64::consts::{PI, TAU};

/// A vector as its magnitude and its d − 1 angles in radians.
#[derive(Debug, Clone, PartialEq)]
pub struct Spherical {
    /// ‖g‖. After perturbation it may be negative, which points the vector backwards.
    pub magnitude: f64,
    /// θ: the first d − 2 in [0, π], the last in (−π, π]. After perturbation any real number.
    pub angles: Vec<f64>,
}

/// Rectangular to hyper-spherical coordinates.
///
/// # Errors
/// Fewer than two coordinates, a NaN or infinite one, or a norm beyond f64.
pub fn to_spherical<R: Real>(gradient: &[R]) -> Result<Spherical, Error> {
    check_gradient(gradient, 2)?;
    let last = gradient.len() - 1;
    let mut angles = vec![0.0; last];
    let mut tail = gradient[last].to_f64();
    for (angle, g) in angles.iter_mut().zip(&gradient[..last]).rev() {
        let g = g.to_f64();
        *angle = if tail == 0.0 && g == 0.0 { 0.0 } else { tail.atan2(g) };
        // atan2 knows a negative zero, for which the last angle would be −π instead of π.
        if *angle == -PI {
            *angle = PI;
        }
        tail = tail.hypot(g);
    }
    if tail.is_finite() {
        Ok(Spherical { magnitude: tail, angles })
    } else {
        Err(Error::NormOverflow)
    }
}

/// Hyper-spherical to rectangular coordinates. Any angles are accepted, also perturbed ones.
///
/// # Errors
/// No angle at all.
pub fn to_rectangular(spherical: &Spherical) -> Result<Vec<f64>, Error> {
    let Spherical { magnitude, angles } = spherical;
    if angles.is_empty() {
        return Err(Error::TooFewDimensions(1));
    }
    let mut sines = 1.0;
    let mut gradient = Vec::with_capacity(angles.len() + 1);
    for angle in angles {
        let (sin, cos) = angle.sin_cos();
        gradient.push(magnitude * (sines * cos));
        sines *= sin;
    }
    gradient.push(magnitude * sines);
    Ok(gradient)
}

/// The difference of two angles, wrapped to (−π, π].
pub fn wrapped_difference(to: f64, from: f64) -> f64 {
    let turn = (to - from) % TAU;
    if turn > PI {
        turn - TAU
    } else if turn <= -PI {
        turn + TAU
    } else {
        turn
    }
}

/// ‖θ* − θ‖²: the sum of squared wrapped differences of two directions.
///
/// # Errors
/// Directions of different dimension.
pub fn squared_direction_error(perturbed: &[f64], original: &[f64]) -> Result<f64, Error> {
    same_length("the perturbed direction", perturbed, original)?;
    Ok(perturbed.iter().zip(original).map(|(p, o)| wrapped_difference(*p, *o).powi(2)).sum())
}

/// ‖g* − g‖².
///
/// # Errors
/// Gradients of different dimension.
pub fn squared_gradient_error<R: Real>(perturbed: &[R], original: &[R]) -> Result<f64, Error> {
    same_length("the perturbed gradient", perturbed, original)?;
    Ok(perturbed.iter().zip(original).map(|(p, o)| (p.to_f64() - o.to_f64()).powi(2)).sum())
}

/// The cosine of the angle between two gradients; 0 if one of them is zero.
///
/// # Errors
/// Different dimensions, or values that are not finite.
pub fn cosine<R: Real>(a: &[R], b: &[R]) -> Result<f64, Error> {
    check_gradient(a, 1)?;
    check_gradient(b, 1)?;
    same_length("the second gradient", b, a)?;
    // Divided by their largest entries first: then no square overflows, and none that matters
    // vanishes.
    let (largest_a, largest_b) = (largest(a), largest(b));
    if largest_a == 0.0 || largest_b == 0.0 {
        return Ok(0.0);
    }
    let (mut dot, mut norm_a, mut norm_b) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (x.to_f64() / largest_a, y.to_f64() / largest_b);
        dot += x * y;
        norm_a += x * x;
        norm_b += y * y;
    }
    Ok((dot / (norm_a.sqrt() * norm_b.sqrt())).clamp(-1.0, 1.0))
}

fn largest<R: Real>(values: &[R]) -> f64 {
    values.iter().fold(0.0, |largest, x| x.to_f64().abs().max(largest))
}

fn same_length<T>(what: &'static str, given: &[T], expected: &[T]) -> Result<(), Error> {
    if given.len() == expected.len() {
        Ok(())
    } else {
        Err(Error::LengthMismatch { what, expected: expected.len(), actual: given.len() })
    }
}
