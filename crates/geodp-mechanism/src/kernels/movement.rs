//! One chunk of a comparison of two directions: how far each angle moved, no angle formed.
//!
//! With (cos θ_z, sin θ_z) of one vector and o_z, r_z = √(Σ_{i > z} o_i²) of the other, the angle
//! between the pairs is atan2(cross, dot), cross = cos θ·r − sin θ·o, dot = cos θ·o + sin θ·r: one
//! arctangent instead of two, wrapped by itself, and accurate where two angles nearly agree. Only
//! its size is needed. The arctangent is branch-free: reduced to [0, tan π/8], then the minimax
//! polynomial of Sun's fdlibm (`s_atan.c`), which covers [0, 7/16].

use super::multiversion;
use super::rotate::{CHUNK, sum_of_squares_by};
use super::scan::{self, CHAINS};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// What lies behind a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Tail {
    /// Coordinates follow: the sum of their squares, and the radius that the chunk's last sine is
    /// made of (the norm of what follows, or the last coordinate itself, signed, if only that
    /// follows).
    Follows { squares: f64, radius: f64 },
    /// The chunk ends with the gradient's last coordinate.
    End,
}

/// The arrays of one chunk, reused from chunk to chunk.
pub(crate) struct Work {
    /// In: the other vector's coordinates.
    pub(crate) other: [f64; CHUNK],
    radii: [f64; CHUNK + 1],
    moved: [f64; CHUNK],
}

impl Work {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { other: [0.0; CHUNK], radii: [0.0; CHUNK + 1], moved: [0.0; CHUNK] })
    }
}

multiversion!(
    /// Σ of squared angle differences between the chunk in `work` (`len` coordinates) and the
    /// directions `cos`, `sin` of its angles, and Σ of squares of the chunk.
    moved_chunk = moved_chunk_source;
    (work: &mut Work, len: usize, cos: &[f64], sin: &[f64], tail: Tail) -> (f64, f64)
);

#[inline(always)]
fn moved_chunk_source(
    work: &mut Work,
    len: usize,
    cos: &[f64],
    sin: &[f64],
    tail: Tail,
) -> (f64, f64) {
    let squares = fill_radii(work, len, tail);
    // One angle for every coordinate but the vector's last, as `cos` and `sin` have it.
    let angles = cos.len();
    let radii = &work.radii[1..=angles];
    let inputs = cos.iter().zip(sin).zip(&work.other[..angles]).zip(radii);
    for (moved, (((cos, sin), o), r)) in work.moved[..angles].iter_mut().zip(inputs) {
        *moved = angle_between(*cos, *sin, *o, *r);
    }
    (sum_of_squares_by::<_, 8>(&work.moved[..angles], |x| x), squares)
}

/// Suffix norms after each coordinate into `radii[1..]`; returns the chunk's Σ of squares.
#[inline(always)]
fn fill_radii(work: &mut Work, len: usize, tail: Tail) -> f64 {
    let padded = len.next_multiple_of(CHAINS).min(CHUNK);
    work.other[len..padded].fill(0.0);
    let totals = scan::suffix_squares(&work.other[..padded], &mut work.radii[..padded]);
    let segment = padded / CHAINS;
    let mut after = match tail {
        Tail::Follows { squares, .. } => squares,
        Tail::End => 0.0,
    };
    let before = after;
    for (chain, total) in totals.iter().enumerate().rev() {
        for radius in &mut work.radii[chain * segment..(chain + 1) * segment] {
            *radius = (*radius + after).sqrt();
        }
        after += total;
    }
    match tail {
        Tail::Follows { radius, .. } => work.radii[len] = radius,
        // The last coordinate takes the place of its norm: the last angle is signed.
        Tail::End => work.radii[len - 1] = work.other[len - 1],
    }
    after - before
}

/// |atan2(cross, dot)| of the pairs (cos, sin) and (o, r), in [0, π]; (0, 0) points along (1, 0).
#[inline(always)]
fn angle_between(cos: f64, sin: f64, o: f64, r: f64) -> f64 {
    const TAN_PI_8: f64 = std::f64::consts::SQRT_2 - 1.0;
    let o = if o == 0.0 && r == 0.0 { 1.0 } else { o };
    let cross = f64::mul_add(cos, r, -(sin * o)).abs();
    let dot = f64::mul_add(cos, o, sin * r);
    let along = dot.abs();
    let (low, high) = (cross.min(along), cross.max(along));
    let steep = low > high * TAN_PI_8;
    let numerator = if steep { low - high } else { low };
    let denominator = if steep { low + high } else { high };
    let q = numerator / denominator;
    let z = q * q;
    let mut poly = 1.628_582_011_536_578_2e-2;
    for coefficient in [
        -3.653_157_274_421_691_6e-2,
        4.976_877_994_615_932e-2,
        -5.833_570_133_790_573_5e-2,
        6.661_073_137_387_531e-2,
        -7.691_876_205_044_83e-2,
        9.090_887_133_436_507e-2,
        -1.111_111_040_546_235_6e-1,
        1.428_571_427_250_346_6e-1,
        -1.999_999_999_987_648_3e-1,
        3.333_333_333_333_293e-1,
    ] {
        poly = f64::mul_add(poly, z, coefficient);
    }
    let angle = f64::mul_add(-(q * z), poly, q);
    let angle = if steep { angle + FRAC_PI_4 } else { angle };
    let angle = if cross > along { FRAC_PI_2 - angle } else { angle };
    if dot < 0.0 { PI - angle } else { angle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Level;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn arctangent_agrees_with_the_standard_library(
            turn in -PI..PI, other in -PI..PI, length in 1e-30f64..1e30,
        ) {
            let (sin, cos) = turn.sin_cos();
            let (r, o) = other.sin_cos();
            let found = angle_between(cos, sin, length * o, length * r);
            let expected = crate::sphere::wrapped_difference(other, turn).abs();
            prop_assert!((found - expected).abs() < 2e-15, "{found} {expected}");
        }

        #[test]
        fn small_angles_keep_relative_precision(exponent in -14f64..-1.0) {
            let angle = 10f64.powf(exponent);
            let found = angle_between(1.0, 0.0, angle.cos(), angle.sin());
            prop_assert!((found / angle - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn instruction_sets_give_the_same_bits() {
        for len in [2, 7, 8, 1000, CHUNK] {
            let wave = |k: f64| -> Vec<f64> { (0..len).map(|i| (i as f64 * k).sin()).collect() };
            let (cos, sin): (Vec<f64>, Vec<f64>) =
                wave(1.7)[1..].iter().map(|t| (t.cos(), t.sin())).unzip();
            let run = |level| {
                let mut work = Work::new();
                work.other[..len].copy_from_slice(&wave(0.3));
                let (moved, squares) = moved_chunk(level, &mut work, len, &cos, &sin, Tail::End);
                (moved.to_bits(), squares.to_bits())
            };
            for level in Level::available() {
                assert_eq!(run(level), run(Level::Portable), "{level:?} {len}");
            }
        }
    }
}
