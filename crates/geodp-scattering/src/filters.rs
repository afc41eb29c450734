//! The filters, in closed form, as [kymatio](https://www.kymat.io) 0.3 defines them for J = 2, L = 8.
//!
//! A Gabor filter of width σ, angle φ, frequency ξ and slant s, sampled on the pixels and repeated
//! with period P, has by Poisson's formula the real transform
//!
//! ĝ(ω) = (π/3.1415)·Σ_m exp(−½σ²(v∥² + v⊥²/s²)), v = ω + 2πm − ξ·(cos φ, sin φ),
//!
//! v∥ along φ, v⊥ across it; 3.1415 is kymatio's literal for π and is kept. The wavelets are
//! ψ̂ = ĝ_ξ − (ĝ_ξ(0)/ĝ_0(0))·ĝ_0 with σ = 0.8·2^j, ξ = (3π/4)/2^j, φ = (3 − θ)π/8, s = ½. The low-pass
//! is ξ = 0, σ = 1.6, s = 1: it is separable, so "low-pass, keep every fourth pixel, crop the border" is
//! A·U·Aᵀ with one small matrix a side ([`low_pass`]). Everything is computed in f64 and rounded once.

use std::f64::consts::{PI, TAU};

/// kymatio divides by 2·3.1415·σ²/s.
#[allow(clippy::approx_constant, reason = "kymatio's literal")]
pub(crate) const UNIT: f64 = PI / 3.1415;
/// Copies of the frequency plane that are summed on each side: further ones are below 1e-17.
pub(crate) const COPIES: std::ops::RangeInclusive<i32> = -2..=2;
/// Angles of the wavelets at one scale.
pub(crate) const ANGLES: usize = 8;

/// Frequencies of one axis, 2πk/P.
pub(crate) fn frequency(k: usize, length: usize) -> f64 {
    TAU * k as f64 / length as f64
}

/// Σ over copies of the Gaussian of the Gabor filter at `frequency`, without [`UNIT`].
fn gabor(omega: [f64; 2], sigma: f64, angle: f64, xi: f64, slant: f64) -> f64 {
    let (cos, sin) = (libm::cos(angle), libm::sin(angle));
    let mut sum = 0.0;
    for a in COPIES {
        for b in COPIES {
            let (x, y) = (omega[0] + TAU * f64::from(a), omega[1] + TAU * f64::from(b));
            let (along, across) = (x * cos + y * sin - xi, (y * cos - x * sin) / slant);
            sum += libm::exp(-0.5 * sigma * sigma * (along * along + across * across));
        }
    }
    sum
}

/// ψ̂ of scale j and angle number θ at every frequency of an image of `height` × `width`, row by row,
/// times `factor`.
pub(crate) fn morlet([height, width]: [usize; 2], j: i32, theta: usize, factor: f64) -> Vec<f32> {
    let scale = f64::from(1 << j);
    let (sigma, xi, slant) = (0.8 * scale, 0.75 * PI / scale, 0.5);
    let angle = (3.0 - theta as f64) * PI / ANGLES as f64;
    let wave = |omega| gabor(omega, sigma, angle, xi, slant);
    let envelope = |omega| gabor(omega, sigma, angle, 0.0, slant);
    let balance = wave([0.0; 2]) / envelope([0.0; 2]);
    let mut filter = Vec::with_capacity(height * width);
    for k in 0..height {
        for l in 0..width {
            let omega = [frequency(k, height), frequency(l, width)];
            filter.push((factor * UNIT * (wave(omega) - balance * envelope(omega))) as f32);
        }
    }
    filter
}
