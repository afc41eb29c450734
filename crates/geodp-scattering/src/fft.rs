//! The discrete Fourier transform of many images at once, for any even length.
//!
//! y_k = Σ_n x_n·exp(−2πi·kn/N), by Stockham's passes of radix 4, 2, 3, 5 and, for other prime
//! factors r, the plain sum of r² terms. A pass of radix r with l = r·m values left and stride s:
//!
//! y\[q + s(r·p + j)\] = exp(−2πi·pj/l)·Σ_k x\[q + s(p + m·k)\]·exp(−2πi·jk/r).
//!
//! Two passes of 3 in a row are done in one, to the same bits: their nine values stay in the registers
//! of AVX-512. The inverse is the forward transform of numbers whose real and imaginary parts have
//! changed places. Own code and no library, because a library chooses its algorithm by the CPU, and
//! with it the last bits of every feature.

use crate::butterflies::{Butterfly, Five, Four, Three, Two};
use crate::lanes::{Complex, Lanes};

/// The stages for one length.
#[derive(Clone, Debug)]
pub(crate) struct Fft {
    stages: Vec<Stage>,
}

/// What goes over the values once.
#[derive(Clone, Debug)]
enum Stage {
    One(Pass),
    /// Two passes of radix 3.
    Nine(Pass, Pass),
}

#[derive(Clone, Debug)]
struct Pass {
    radix: usize,
    /// Values left after it, m.
    rest: usize,
    /// Distance of neighbours, s.
    stride: usize,
    /// exp(−2πi·pj/l) at \[p·radix + j\].
    twiddles: Vec<(f32, f32)>,
    /// exp(−2πi·j/r), for the radices without a formula of their own.
    roots: Vec<(f32, f32)>,
}

/// A line of values in a buffer: the first one's place, and the distance of neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    pub(crate) start: usize,
    pub(crate) step: usize,
}

impl Line {
    /// Neighbours side by side from the buffer's start.
    pub(crate) const WHOLE: Line = Line { start: 0, step: 1 };

    #[inline(always)]
    pub(crate) fn at(self, index: usize) -> usize {
        self.start + self.step * index
    }
}

/// Two lines between which the passes go back and forth.
#[derive(Clone, Debug)]
pub(crate) struct Between<V> {
    here: Vec<Complex<V>>,
    there: Vec<Complex<V>>,
}

impl<V: Lanes> Between<V> {
    pub(crate) fn new(length: usize) -> Self {
        Between { here: vec![Complex::default(); length], there: vec![Complex::default(); length] }
    }
}

impl Fft {
    /// The passes for an even length of at least 6: there are at least two of them.
    pub(crate) fn new(length: usize) -> Self {
        let mut passes = Vec::new();
        let (mut left, mut stride) = (length, 1);
        while left > 1 {
            let radix = [4, 2, 3, 5].into_iter().find(|radix| left.is_multiple_of(*radix));
            let radix = radix.unwrap_or_else(|| {
                (7..left).step_by(2).find(|r| left.is_multiple_of(*r)).unwrap_or(left)
            });
            let rest = left / radix;
            let twiddles = (0..left).map(|at| root(left, (at / radix) * (at % radix)));
            let roots = (0..radix).map(|power| root(radix, power));
            let (twiddles, roots) = (twiddles.collect(), roots.collect());
            passes.push(Pass { radix, rest, stride, twiddles, roots });
            (left, stride) = (rest, stride * radix);
        }
        debug_assert!(passes.len() >= 2, "a length of {length} has one pass");
        let mut stages = Vec::new();
        let mut passes = passes.into_iter().peekable();
        while let Some(pass) = passes.next() {
            stages.push(match passes.next_if(|second| pass.radix == 3 && second.radix == 3) {
                Some(second) => Stage::Nine(pass, second),
                None => Stage::One(pass),
            });
        }
        Fft { stages }
    }

    /// Transforms the line `source` of `from` into the line `target` of `to`.
    #[inline(always)]
    pub(crate) fn run<V: Lanes>(
        &self,
        (from, source): (&[Complex<V>], Line),
        (to, target): (&mut [Complex<V>], Line),
        between: &mut Between<V>,
    ) {
        let last = self.stages.len() - 1;
        for (number, stage) in self.stages.iter().enumerate() {
            let (from, source) =
                if number == 0 { (from, source) } else { (&between.here[..], Line::WHOLE) };
            let (to, target) = if number == last {
                (&mut to[..], target)
            } else {
                (&mut between.there[..], Line::WHOLE)
            };
            stage.run((from, source), (to, target));
            std::mem::swap(&mut between.here, &mut between.there);
        }
    }
}

/// exp(−2πi·power/order), by the crate `libm` and not by the system: the same bits everywhere.
pub(crate) fn root(order: usize, power: usize) -> (f32, f32) {
    let angle = std::f64::consts::TAU * (power % order) as f64 / order as f64;
    (libm::cos(angle) as f32, -libm::sin(angle) as f32)
}

type Source<'a, V> = (&'a [Complex<V>], Line);
type Target<'a, V> = (&'a mut [Complex<V>], Line);

impl Stage {
    #[inline(always)]
    fn run<V: Lanes>(&self, from: Source<'_, V>, to: Target<'_, V>) {
        match self {
            Stage::One(pass) => match pass.radix {
                2 => pass.butterflies::<V, Two, 2>(from, to),
                3 => pass.butterflies::<V, Three, 3>(from, to),
                4 => pass.butterflies::<V, Four, 4>(from, to),
                5 => pass.butterflies::<V, Five, 5>(from, to),
                _ => pass.plain(from, to),
            },
            Stage::Nine(first, second) => first.nines(second, from, to),
        }
    }
}

impl Pass {
    #[inline(always)]
    fn butterflies<V: Lanes, B: Butterfly<R>, const R: usize>(
        &self,
        (from, source): Source<'_, V>,
        (to, target): Target<'_, V>,
    ) {
        let (s, m) = (self.stride, self.rest);
        for p in 0..m {
            for q in 0..s {
                let mut values = [Complex::default(); R];
                for (k, value) in values.iter_mut().enumerate() {
                    *value = from[source.at(q + s * (p + m * k))];
                }
                B::apply(&mut values);
                self.turn(&mut values, p);
                for (j, value) in values.iter().enumerate() {
                    to[target.at(q + s * (R * p + j))] = *value;
                }
            }
        }
    }

    /// This pass and `second`, both of radix 3: what the second adds up are the values j of the
    /// first's blocks p + m·k, k < 3.
    #[inline(always)]
    fn nines<V: Lanes>(
        &self,
        second: &Pass,
        (from, source): Source<'_, V>,
        (to, target): Target<'_, V>,
    ) {
        let (s, m) = (self.stride, second.rest);
        for p in 0..m {
            for q in 0..s {
                let mut blocks = [[Complex::default(); 3]; 3];
                for (k, block) in blocks.iter_mut().enumerate() {
                    for (j, value) in block.iter_mut().enumerate() {
                        *value = from[source.at(q + s * (p + m * (k + 3 * j)))];
                    }
                    Three::apply(block);
                    self.turn(block, p + m * k);
                }
                for j in 0..3 {
                    let mut values = [blocks[0][j], blocks[1][j], blocks[2][j]];
                    Three::apply(&mut values);
                    second.turn(&mut values, p);
                    for (k, value) in values.iter().enumerate() {
                        to[target.at(q + s * (3 * (3 * p + k) + j))] = *value;
                    }
                }
            }
        }
    }

    /// Multiplies by exp(−2πi·pj/l).
    #[inline(always)]
    fn turn<V: Lanes, const R: usize>(&self, values: &mut [Complex<V>; R], p: usize) {
        // exp(0) = 1: the first block needs no multiplications.
        if p > 0 {
            let twiddles = &self.twiddles[p * R..][..R];
            for j in 1..R {
                values[j] = values[j].times(twiddles[j]);
            }
        }
    }

    #[inline(always)]
    fn plain<V: Lanes>(&self, (from, source): Source<'_, V>, (to, target): Target<'_, V>) {
        let (s, m, radix) = (self.stride, self.rest, self.radix);
        for p in 0..m {
            for q in 0..s {
                for j in 0..radix {
                    let mut sum = from[source.at(q + s * p)];
                    for k in 1..radix {
                        let term = from[source.at(q + s * (p + m * k))];
                        sum = sum + term.times(self.roots[j * k % radix]);
                    }
                    let at = target.at(q + s * (radix * p + j));
                    to[at] = sum.times(self.twiddles[p * radix + j]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::Portable;

    /// Another way to the same numbers: the sum as it is written, in double precision.
    fn by_definition(values: &[(f64, f64)], k: usize) -> (f64, f64) {
        let mut sum = (0.0, 0.0);
        for (n, (re, im)) in values.iter().enumerate() {
            let angle = std::f64::consts::TAU * ((k * n) % values.len()) as f64;
            let (sin, cos) = (angle / values.len() as f64).sin_cos();
            sum = (sum.0 + re * cos + im * sin, sum.1 + im * cos - re * sin);
        }
        sum
    }

    #[test]
    fn every_even_length_is_transformed() {
        for length in (6..=80).step_by(2).chain([116, 244]) {
            let value = |at: usize| (((at * 37 + 11) % 101) as f64, ((at * 53 + 7) % 97) as f64);
            let values: Vec<_> = (0..length).map(value).collect();
            let scale = |lane: usize| (lane + 1) as f64;
            let lanes = |v: f64| {
                Portable::load(&(0..8).map(|lane| (v * scale(lane)) as f32).collect::<Vec<_>>())
            };
            // Every third place of a longer buffer, to every second of another.
            let mut from = vec![Complex::default(); 3 * length + 1];
            let mut to = vec![Complex::default(); 2 * length + 5];
            for (at, (re, im)) in values.iter().enumerate() {
                from[3 * at + 1] = Complex::new(lanes(*re), lanes(*im));
            }
            let (source, target) = (Line { start: 1, step: 3 }, Line { start: 5, step: 2 });
            let mut between = Between::new(length);
            Fft::new(length).run((&from, source), (&mut to, target), &mut between);
            for k in 0..length {
                let (found, expected) = (to[2 * k + 5], by_definition(&values, k));
                let (mut re, mut im) = ([0.0; 8], [0.0; 8]);
                found.re.store(&mut re);
                found.im.store(&mut im);
                for lane in 0..8 {
                    let re = f64::from(re[lane]) / scale(lane) - expected.0;
                    let im = f64::from(im[lane]) / scale(lane) - expected.1;
                    assert!(re.hypot(im) < 3e-5 * length as f64, "{length} {k}: {re} {im}");
                }
            }
        }
    }

    #[test]
    fn passes_in_one_give_the_bits_of_passes_one_by_one() {
        for length in [18, 36, 54, 90, 108, 162, 324] {
            let joined = Fft::new(length);
            let split = joined.stages.iter().cloned().flat_map(|stage| match stage {
                Stage::One(pass) => vec![Stage::One(pass)],
                Stage::Nine(first, second) => vec![Stage::One(first), Stage::One(second)],
            });
            let split = Fft { stages: split.collect() };
            assert!(split.stages.len() > joined.stages.len());
            let value = |at: usize| Portable::splat((at * at * 37 % 101) as f32 / 7.0);
            let from: Vec<_> =
                (0..length).map(|at| Complex::new(value(at), value(3 * at + 1))).collect();
            let spectrum = |fft: &Fft| {
                let mut to = vec![Complex::default(); length];
                let mut between = Between::new(length);
                fft.run((&from, Line::WHOLE), (&mut to, Line::WHOLE), &mut between);
                to
            };
            assert_eq!(spectrum(&joined), spectrum(&split), "{length}");
        }
    }
}
