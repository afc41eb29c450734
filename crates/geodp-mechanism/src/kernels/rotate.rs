//! One chunk of the fast GeoDP route: angles are turned without ever being formed.
//!
//! With suffix norms r_z = √(Σ_{i ≥ z} g_i²): cos θ_z = g_z / r_z and sin θ_z = r_{z+1} / r_z. For
//! noise n_z the addition theorems give cos(θ_z + n_z) and sin(θ_z + n_z), and coordinate z of the
//! turned unit vector is cos(θ_z + n_z) · Π_{i < z} sin(θ_i + n_i). There the norms telescope: it is
//!
//! (g_z·cos n_z − r_{z+1}·sin n_z) · Π_{i < z} (cos n_i + g_i / r_{i+1}·sin n_i) / r_0,
//!
//! for which r_{z+1} and its inverse come from one reciprocal root. Where r_{z+1} = 0 the angle is 0
//! or π, and 0 where g_z = 0 as well: the factor is g_z·sin n_z, with 1 for a zero g_z. What lies
//! before and after the chunk enters as one number each.
//!
//! Sums and products of all coordinates behind or before each one are made of windows of eight, which
//! are plain loops over shifted arrays, and eight chains of windows: vectors without a shuffle.

use super::{elementary, multiversion};
use crate::real::Real;

/// Coordinates in one chunk: the unit of work, of noise addresses, and of the scans.
pub(crate) const CHUNK: usize = 1024;
/// Coordinates in a window, and chains of windows.
const LANES: usize = 8;

/// The arrays of one chunk; reused from chunk to chunk. Only the first `len` entries count, and
/// a length that is not a multiple of [`LANES`] is padded. Aligned, or every store would touch two
/// lines of the cache.
#[repr(C, align(64))]
pub(crate) struct Work {
    /// In: the noise on each angle, in radians. Within, the turned chunk but for its products.
    pub(crate) noise: [f64; CHUNK + LANES],
    /// [`LANES`] ones, and the factors of the products.
    factors: [f64; CHUNK + LANES],
    /// Windows of two: squares, then factors.
    pairs: [f64; CHUNK + LANES],
}

impl Work {
    pub(crate) fn new() -> Box<Self> {
        let empty = [0.0; CHUNK + LANES];
        Box::new(Self { noise: empty, factors: empty, pairs: empty })
    }
}

/// What a chunk is turned by: the same for all of them.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    /// Coordinates are multiplied by this first, so that squares neither overflow nor vanish.
    pub(crate) scale: f64,
    /// No angle is turned by more radians than this.
    pub(crate) largest: f64,
}

/// Where a chunk stands in its gradient.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    /// Σ of squares from the chunk's start to the gradient's end.
    pub(crate) from: f64,
    /// Σ of squares behind the chunk.
    pub(crate) after: f64,
    /// Σ of squares behind the chunk's last angle: `after`, but for the gradient's last chunk, whose
    /// last coordinate has no angle.
    pub(crate) least: f64,
    /// Product of the chunk's turned sines.
    pub(crate) sines: f64,
    /// Length of the part of the release from the chunk's start on.
    pub(crate) length: f64,
}

multiversion!(
    /// Turns a chunk by `work.noise` and returns the product of its sines. It is left as part of a
    /// unit vector, but for the sines before it. Noise must be within
    /// [`elementary::MAX_REDUCED_RADIANS`], and 0 for the gradient's last coordinate, which has no
    /// angle; that of the one before, whose sine is signed, turns with the last one's sign.
    turn_chunk<R: Real> = turn_chunk_source;
    (work: &mut Work, chunk: &mut [R], turn: Turn, place: Place) -> f64
);

multiversion!(
    /// Σ of squares of a slice, each value times `scale`, by 32 chains.
    sum_of_squares<R: Real> = sum_of_squares_source; (values: &[R], scale: f64) -> f64
);

multiversion!(
    /// Multiplies a slice by `factor`.
    stretch<R: Real> = stretch_source; (values: &mut [R], factor: f64)
);

#[inline(always)]
fn sum_of_squares_source<R: Real>(values: &[R], scale: f64) -> f64 {
    sum_of_squares_by::<_, 32>(values, |x| scaled(x, scale))
}

/// Σ of squares of what `float` makes of each value, by some chains.
#[inline(always)]
pub(super) fn sum_of_squares_by<T: Copy, const CHAINS: usize>(
    values: &[T],
    float: impl Fn(T) -> f64,
) -> f64 {
    let mut lanes = [0.0; CHAINS];
    let (blocks, rest) = values.as_chunks::<CHAINS>();
    for block in blocks {
        for (lane, value) in lanes.iter_mut().zip(block) {
            let x = float(*value);
            *lane = f64::mul_add(x, x, *lane);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        let x = float(*value);
        *lane = f64::mul_add(x, x, *lane);
    }
    lanes.iter().sum()
}

#[inline(always)]
fn stretch_source<R: Real>(values: &mut [R], factor: f64) {
    for value in values {
        *value = R::from_f64(value.to_f64() * factor);
    }
}

/// A coordinate in f64; only types whose squares overflow there are scaled.
#[inline(always)]
fn scaled<R: Real>(value: R, scale: f64) -> f64 {
    if R::SQUARES_OVERFLOW_F64 { value.to_f64() * scale } else { value.to_f64() }
}

/// A norm to divide by: 1 for that of nothing.
#[inline(always)]
fn norm_or_one(squares: f64) -> f64 {
    if squares == 0.0 { 1.0 } else { squares.sqrt() }
}

#[inline(always)]
fn turn_chunk_source<R: Real>(work: &mut Work, chunk: &mut [R], turn: Turn, place: Place) -> f64 {
    square_pairs(work, chunk, turn.scale);
    if place.least == 0.0 {
        turn_each::<R, false>(work, chunk, turn, place.after, elementary::sin_cos_radians);
    } else if is_near_zero(&work.noise[..chunk.len()], turn.largest) {
        turn_each::<R, true>(work, chunk, turn, place.after, elementary::sin_cos_near_zero);
    } else {
        turn_each::<R, true>(work, chunk, turn, place.after, elementary::sin_cos_radians);
    }
    prefix_products(work, chunk, 1.0 / norm_or_one(place.from)) * norm_or_one(place.after)
}

/// Whether no angle needs a reduction. Where one could, the chunk's own noise decides: the same sine and
/// cosine either way, but those near 0 take half the time.
#[inline(always)]
fn is_near_zero(angles: &[f64], largest: f64) -> bool {
    largest <= elementary::MAX_NEAR_ZERO_RADIANS
        || largest_of(angles) <= elementary::MAX_NEAR_ZERO_RADIANS
}

/// The largest of some magnitudes.
#[inline(always)]
fn largest_of(values: &[f64]) -> f64 {
    let mut largest = [0.0; 4 * LANES];
    let (blocks, rest) = values.as_chunks::<{ 4 * LANES }>();
    for block in blocks {
        for (largest, value) in largest.iter_mut().zip(block) {
            *largest = f64::max(value.abs(), *largest);
        }
    }
    largest.iter().chain(rest).fold(0.0, |most, x| f64::max(x.abs(), most))
}

/// Fills `work.pairs` with sums of two squares, the last with one and zeros behind it.
#[inline(always)]
fn square_pairs<R: Real>(work: &mut Work, chunk: &[R], scale: f64) {
    let pairs = &mut work.pairs;
    let len = chunk.len();
    for ((pair, first), second) in pairs.iter_mut().zip(chunk).zip(&chunk[1..]) {
        let (first, second) = (scaled(*first, scale), scaled(*second, scale));
        *pair = f64::mul_add(second, second, first * first);
    }
    let last = scaled(chunk[len - 1], scale);
    pairs[len - 1] = last * last;
    pairs[len..len.next_multiple_of(LANES) + LANES].fill(0.0);
}

/// Each coordinate turned within its plane, into `work.noise`, and the factor it leaves for those
/// behind it; from the last to the first, with the Σ of squares behind each of eight in registers.
/// `PLAIN`: no angle has nothing behind it.
#[inline(always)]
fn turn_each<R: Real, const PLAIN: bool>(
    work: &mut Work,
    chunk: &[R],
    turn: Turn,
    after: f64,
    sin_cos: impl Fn(f64) -> (f64, f64),
) {
    let mut behind = [after; LANES];
    let (blocks, rest) = chunk.as_chunks::<LANES>();
    if !rest.is_empty() {
        let mut padded = [R::default(); LANES];
        padded[..rest.len()].copy_from_slice(rest);
        let at = blocks.len() * LANES;
        turn_block::<R, PLAIN>(work, at, &padded, turn, &mut behind, &sin_cos);
    }
    for (index, block) in blocks.iter().enumerate().rev() {
        turn_block::<R, PLAIN>(work, index * LANES, block, turn, &mut behind, &sin_cos);
    }
}

/// Eight coordinates from `at` on, with the Σ of squares behind each in `behind` once those up to the next
/// eight are added.
#[inline(always)]
fn turn_block<R: Real, const PLAIN: bool>(
    work: &mut Work,
    at: usize,
    block: &[R; LANES],
    turn: Turn,
    behind: &mut [f64; LANES],
    sin_cos: impl Fn(f64) -> (f64, f64),
) {
    let [a, b, c, d] = windows(&work.pairs, [at + 1, at + 3, at + 5, at + 7]);
    let noise = lanes_mut(&mut work.noise, at);
    let factors = lanes_mut(&mut work.factors, LANES + at);
    for i in 0..LANES {
        behind[i] += (a[i] + b[i]) + (c[i] + d[i]);
        let after = behind[i];
        let g = scaled(block[i], turn.scale);
        let (sin, cos) = sin_cos(noise[i]);
        let inverse = elementary::reciprocal_root(after);
        if PLAIN {
            let slope = inverse * sin;
            noise[i] = f64::mul_add(-after, slope, g * cos);
            factors[i] = f64::mul_add(g, slope, cos);
        } else {
            let nothing = after == 0.0;
            let g = if nothing && g == 0.0 { 1.0 } else { g };
            let slope = if nothing { sin } else { inverse * sin };
            noise[i] = f64::mul_add(-after, slope, g * cos);
            factors[i] = f64::mul_add(g, slope, if nothing { 0.0 } else { cos });
        }
    }
}

/// Multiplies each coordinate by `start` and the factors before it, and writes the chunk; returns the
/// product of all.
#[inline(always)]
fn prefix_products<R: Real>(work: &mut Work, chunk: &mut [R], start: f64) -> f64 {
    let Work { noise: turned, factors, pairs } = work;
    let len = chunk.len();
    let padded = len.next_multiple_of(LANES);
    factors[..LANES].fill(1.0);
    factors[LANES + len..LANES + padded].fill(1.0);
    pairs[..LANES].fill(1.0);
    let inputs = factors[LANES..LANES + padded].iter().zip(&factors[LANES - 1..]);
    for (pair, (factor, before)) in pairs[LANES..].iter_mut().zip(inputs) {
        *pair = factor * before;
    }

    let mut running = [start; LANES];
    let before = |at: usize| windows(pairs, [at + 7, at + 5, at + 3, at + 1]);
    let (blocks, rest) = chunk.as_chunks_mut::<LANES>();
    let whole = blocks.len() * LANES;
    for (at, block) in (0..whole).step_by(LANES).zip(blocks) {
        let ([a, b, c, d], turned) = (before(at), lanes(turned, at));
        for (i, product) in running.iter_mut().enumerate() {
            *product *= (a[i] * b[i]) * (c[i] * d[i]);
        }
        for (i, value) in block.iter_mut().enumerate() {
            *value = R::from_f64(turned[i] * running[i]);
        }
    }
    if !rest.is_empty() {
        let [a, b, c, d] = before(whole);
        for (i, product) in running.iter_mut().enumerate() {
            *product *= (a[i] * b[i]) * (c[i] * d[i]);
        }
        for (i, value) in rest.iter_mut().enumerate() {
            *value = R::from_f64(turned[whole + i] * running[i]);
        }
    }
    running[(len - 1) % LANES] * factors[LANES + len - 1]
}

/// Eight values from each place on. Not `map`: that would not be compiled for the same target.
#[inline(always)]
fn windows(values: &[f64], at: [usize; 4]) -> [&[f64; LANES]; 4] {
    let [a, b, c, d] = at;
    [lanes(values, a), lanes(values, b), lanes(values, c), lanes(values, d)]
}

/// Eight values from `at` on.
#[inline(always)]
fn lanes(values: &[f64], at: usize) -> &[f64; LANES] {
    values[at..].first_chunk().expect("arrays of a chunk are padded")
}

/// Eight values from `at` on.
#[inline(always)]
fn lanes_mut(values: &mut [f64], at: usize) -> &mut [f64; LANES] {
    values[at..].first_chunk_mut().expect("arrays of a chunk are padded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Level;

    fn wave(len: usize) -> Vec<f64> {
        (0..len).map(|i| (i as f64 * 1.3).sin()).collect()
    }

    /// Turned in place from these coordinates; returns the product of sines, too.
    fn turned<R: Real>(level: Level, chunk: &[f64], angle_std: f64, after: f64) -> (Vec<f64>, f64) {
        let mut work = Work::new();
        for (noise, normal) in work.noise.iter_mut().zip(wave(chunk.len())) {
            *noise = angle_std * normal;
        }
        let mut chunk: Vec<R> = chunk.iter().map(|x| R::from_f64(*x)).collect();
        let from = after + sum_of_squares(level, &chunk, 1.0);
        let turn = Turn { scale: 1.0, largest: 9.5 * angle_std };
        let sines = turn_chunk(
            level,
            &mut work,
            &mut chunk,
            turn,
            Place { from, after, least: after, ..Place::default() },
        );
        (chunk.iter().map(|x| x.to_f64()).collect(), sines)
    }

    #[test]
    fn instruction_sets_give_the_same_bits() {
        let bits = |(turned, sines): (Vec<f64>, f64)| {
            (turned.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), sines.to_bits())
        };
        for len in [1, 2, 7, 8, 9, 250, 1000, CHUNK] {
            let mut with_zeros: Vec<f64> = wave(len);
            with_zeros[len / 2..].fill(0.0);
            for chunk in [wave(len), with_zeros, vec![0.0; len]] {
                for (angle_std, after) in [(0.01, 0.3), (3.0, 1e-60), (0.1, 0.0)] {
                    for level in Level::available() {
                        assert_eq!(
                            bits(turned::<f32>(level, &chunk, angle_std, after)),
                            bits(turned::<f32>(Level::Portable, &chunk, angle_std, after)),
                            "{level:?} {len}"
                        );
                        assert_eq!(
                            bits(turned::<f64>(level, &chunk, angle_std, after)),
                            bits(turned::<f64>(Level::Portable, &chunk, angle_std, after)),
                            "{level:?} {len}"
                        );
                    }
                }
            }
        }
    }

    /// The formula of the module, one coordinate at a time, with its angles.
    #[test]
    fn follows_the_formula() {
        for (len, angle_std, after) in
            [(1, 0.3, 2.0), (5, 40.0, 0.5), (1000, 0.02, 1e-9), (CHUNK, 0.5, 7.0)]
        {
            let chunk = wave(len);
            let (turned, sines) = turned::<f64>(Level::best(), &chunk, angle_std, after);
            let mut norms = vec![after.sqrt(); len + 1];
            for z in (0..len).rev() {
                norms[z] = norms[z + 1].hypot(chunk[z]);
            }
            let mut product = 1.0;
            for z in 0..len {
                let angle = f64::atan2(norms[z + 1], chunk[z]) + angle_std * wave(len)[z];
                assert!((turned[z] - product * angle.cos()).abs() < 1e-12, "{len}: {z}");
                product *= angle.sin();
            }
            assert!(
                (sines - product).abs() <= 1e-11 * product.abs().max(1e-3),
                "{len}: {sines} {product}"
            );
        }
    }
}
