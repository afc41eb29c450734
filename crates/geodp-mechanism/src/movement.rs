//! How far two gradients lie apart in GeoDP's coordinates, (‖g‖, θ), in O(d) and exactly.
//!
//! [`Direction`] keeps cos θ_z, sin θ_z of one gradient g; every other vector is compared with it
//! in one pass over its coordinates (see `kernels/movement.rs`), so leaving out each of n records
//! costs n passes and no angle. Everything is f64; vectors come as f32, whose squares neither
//! overflow nor vanish in f64. Rows are shared out over threads; the result does not depend on it.

use crate::Error;
use crate::kernels::Level;
use crate::kernels::movement::{Tail, Work, moved_chunk};
use crate::kernels::rotate::CHUNK;
use crate::real::check_gradient;
use rayon::prelude::*;

/// How far a gradient moved.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Movement {
    /// |‖g‖ − ‖g′‖|.
    pub magnitude: f64,
    /// ‖θ − θ′‖₂ over the d − 1 angles, each difference wrapped to (−π, π], in radians.
    pub direction: f64,
}

/// A gradient's direction, ready to be compared with others.
///
/// ```
/// use geodp_mechanism::Direction;
/// // A record that contributes (0, 1)/2 to the mean (1, 0.5) turns it by atan(0.5) = 0.46.
/// let moved = Direction::new(&[1.0, 0.5])?.leaving_out(&[0.0, 1.0], &[0.5])?;
/// assert!((moved[0].direction - 0.5_f64.atan()).abs() < 1e-12);
/// # Ok::<(), geodp_mechanism::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Direction {
    gradient: Vec<f64>,
    cos: Vec<f64>,
    sin: Vec<f64>,
    magnitude: f64,
}

impl Direction {
    /// Of a gradient of at least two finite coordinates.
    ///
    /// # Errors
    /// Too few coordinates, or one that is not finite.
    pub fn new(gradient: &[f32]) -> Result<Self, Error> {
        check_gradient(gradient, 2)?;
        let gradient: Vec<f64> = gradient.iter().map(|g| f64::from(*g)).collect();
        let last = gradient.len() - 1;
        let (mut cos, mut sin) = (vec![0.0; last], vec![0.0; last]);
        let mut squares = gradient[last] * gradient[last];
        for z in (0..last).rev() {
            let g = gradient[z];
            // The last angle is signed: its sine is made of the coordinate itself.
            let after = if z + 1 == last { gradient[last] } else { squares.sqrt() };
            squares += g * g;
            let radius = squares.sqrt();
            (cos[z], sin[z]) =
                if squares == 0.0 { (1.0, 0.0) } else { (g / radius, after / radius) };
        }
        Ok(Self { gradient, cos, sin, magnitude: squares.sqrt() })
    }

    /// ‖g‖.
    pub fn magnitude(&self) -> f64 {
        self.magnitude
    }

    /// d.
    pub fn dim(&self) -> usize {
        self.gradient.len()
    }

    /// The movements from g to g − s·row, for every row (d values each, one after another) and its
    /// factor s: with s = w/B, what leaving out the record whose gradient the row is does to the
    /// mean.
    ///
    /// # Errors
    /// Rows that are not d long, are not as many as the factors, or are not finite.
    pub fn leaving_out(&self, rows: &[f32], factors: &[f64]) -> Result<Vec<Movement>, Error> {
        self.compare(rows, factors, |work, g, row, factor| {
            for ((other, g), x) in work.iter_mut().zip(g).zip(row) {
                *other = g - factor * f64::from(*x);
            }
        })
    }

    /// The movements from g to every row.
    ///
    /// # Errors
    /// As [`leaving_out`](Self::leaving_out).
    pub fn to_each(&self, rows: &[f32]) -> Result<Vec<Movement>, Error> {
        let factors = vec![1.0; rows.len() / self.dim()];
        self.compare(rows, &factors, |work, _, row, _| {
            for (other, x) in work.iter_mut().zip(row) {
                *other = f64::from(*x);
            }
        })
    }

    fn compare(
        &self,
        rows: &[f32],
        factors: &[f64],
        load: impl Fn(&mut [f64], &[f64], &[f32], f64) + Sync,
    ) -> Result<Vec<Movement>, Error> {
        let (what, expected, actual) = ("the list of rows", factors.len() * self.dim(), rows.len());
        if expected != actual {
            return Err(Error::LengthMismatch { what, expected, actual });
        }
        let level = Level::best();
        rows.par_chunks(self.dim())
            .zip(factors)
            .map_init(Work::new, |work, (row, factor)| {
                check_gradient(row, 2)?;
                Ok(self.movement(level, work, |work, from, to| {
                    load(&mut work[..to - from], &self.gradient[from..to], &row[from..to], *factor);
                }))
            })
            .collect()
    }

    /// Compares with one vector, loaded chunk by chunk from its end.
    fn movement(
        &self,
        level: Level,
        work: &mut Work,
        load: impl Fn(&mut [f64], usize, usize),
    ) -> Movement {
        let (dim, mut moved, mut squares) = (self.dim(), 0.0, 0.0_f64);
        let mut only_one_follows = None;
        for from in (0..dim).step_by(CHUNK).rev() {
            let to = (from + CHUNK).min(dim);
            load(&mut work.other, from, to);
            let tail = match only_one_follows {
                _ if to == dim => Tail::End,
                Some(last) => Tail::Follows { squares, radius: last },
                None => Tail::Follows { squares, radius: squares.sqrt() },
            };
            only_one_follows = (from + 1 == dim).then(|| work.other[0]);
            let angles = from..to.min(dim - 1);
            let (cos, sin) = (&self.cos[angles.clone()], &self.sin[angles]);
            let (of_chunk, more) = moved_chunk(level, work, to - from, cos, sin, tail);
            moved += of_chunk;
            squares += more;
        }
        Movement { magnitude: (self.magnitude - squares.sqrt()).abs(), direction: moved.sqrt() }
    }
}
