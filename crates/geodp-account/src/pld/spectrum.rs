//! The masses of a sum from the spectra of its parts: the product of their T-th powers.
//!
//! Two ways to the same numbers. The transform of every point is always possible. But in a large
//! power nearly the whole spectrum vanishes: where that is proved beforehand ([`highest_wave`]), the
//! few waves left are summed directly, and the masses are kept as waves ([`super::waves`]).

use super::waves::{Waves, highest_wave, low_spectrum};
use super::window::Masses;
use realfft::num_complex::Complex64;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Products of spectra below e^this count as zero: next to masses of 1e-7 and more, and added to their
/// error.
pub(super) const NEGLIGIBLE: f64 = -48.0;
/// Directly summing a term costs about as much as this many points of a transform.
const TERM_COST: f64 = 0.04;
/// The longest transform of points.
pub(super) const MOST_POINTS: usize = 1 << 21;
/// Terms to sum directly at most where points lie apart: a few milliseconds.
const MOST_TERMS: usize = 3_000_000;

/// A transform and its inverse.
type Transforms = (Arc<dyn RealToComplex<f64>>, Arc<dyn ComplexToReal<f64>>);

thread_local! {
    static TRANSFORMS: RefCell<HashMap<usize, Transforms>> = RefCell::new(HashMap::new());
}

/// The transforms of a length. Each is planned by a planner of its own: one that has planned others builds on
/// them, and then the last digits of an ε would depend on what a thread was asked before.
fn transforms(points: usize) -> Transforms {
    TRANSFORMS.with_borrow_mut(|known| {
        let plan = || {
            let mut planner = RealFftPlanner::new();
            (planner.plan_fft_forward(points), planner.plan_fft_inverse(points))
        };
        known.entry(points).or_insert_with(plan).clone()
    })
}

/// One release's tilted masses at rising places, to be composed `count` times.
pub(super) struct TiltedPart {
    pub(super) places: Vec<i64>,
    pub(super) mass: Vec<f64>,
    /// Bound on the sum of the masses' errors.
    pub(super) rounding: f64,
    pub(super) count: f64,
}

/// Mass that may be left out at either end of a part: less than the rounding of the rest.
const TRIMMED: f64 = 1e-19;

impl TiltedPart {
    /// Leaves out the ends of `mass` that hold next to nothing, and counts them as errors.
    pub(super) fn trimmed(places: &[i64], mut mass: Vec<f64>, rounding: f64, count: f64) -> Self {
        let light = |sum: &mut f64, mass: &f64| {
            *sum += mass;
            (*sum < TRIMMED).then_some(())
        };
        let above = mass.iter().rev().scan(0.0, light).count();
        mass.truncate(mass.len() - above);
        let below = mass.iter().scan(0.0, light).count();
        mass.drain(..below);
        let places = places[below..][..mass.len()].to_vec();
        Self { places, mass, rounding: rounding + 2.0 * TRIMMED, count }
    }

    pub(super) fn is_even(&self) -> bool {
        are_consecutive(&self.places)
    }
}

/// Rising places without a gap.
pub(super) fn are_consecutive(places: &[i64]) -> bool {
    match places {
        [first, .., last] => last - first == places.len() as i64 - 1,
        _ => true,
    }
}

/// Masses of the sum at first, first + 1, … over at least `wanted` points, modulo their number, and
/// a bound on the error of each; `weights` are the tilt λ and the step h they will be summed with.
/// `None` where waves do not pay and points lie apart, because then all points are better, or are too many
/// to transform: parts whose ends were left out may have no gap and still reach far.
pub(super) fn sum_masses(
    parts: &[TiltedPart],
    first: i64,
    wanted: usize,
    weights: (f64, f64),
) -> Option<(Masses, f64)> {
    let highest = parts.iter().filter_map(|part| highest_wave(part, wanted)).min();
    let cells: usize = parts.iter().map(|part| part.mass.len()).sum();
    if !parts.iter().all(TiltedPart::is_even) {
        let pays = |highest: &usize| *highest < wanted / 2 && highest * cells <= MOST_TERMS;
        return sum_waves(parts, first, wanted, highest.filter(pays)?, weights);
    }
    // However long the window is, its waves may cost no more than the longest transform.
    let affordable = wanted.min(MOST_POINTS) as f64;
    match highest {
        Some(highest)
            if highest < wanted / 2 && TERM_COST * (highest * cells) as f64 <= affordable =>
        {
            sum_waves(parts, first, wanted, highest, weights)
        }
        _ if wanted <= MOST_POINTS => sum_points(parts, first, transform_length(wanted)),
        _ => None,
    }
}

fn sum_waves(
    parts: &[TiltedPart],
    first: i64,
    points: usize,
    highest: usize,
    weights: (f64, f64),
) -> Option<(Masses, f64)> {
    let mut product = Product::new(highest + 1);
    for part in parts {
        let (spectrum, error) = low_spectrum(part, points, highest);
        product.multiply(&spectrum, error + part.rounding, part.count);
    }
    let Powers { mut values, mut error_sum, .. } = product.powers();
    error_sum += points as f64 * NEGLIGIBLE.exp();
    let scale = 1.0 / points as f64;
    values[0] *= 0.5;
    values.iter_mut().for_each(|value| *value *= 2.0 * scale);
    let noise = 2.0 * error_sum * scale;
    let waves = Waves::new(first, points, &values, weights);
    noise.is_finite().then_some((Masses::Waves(waves), noise))
}

fn sum_points(parts: &[TiltedPart], first: i64, points: usize) -> Option<(Masses, f64)> {
    let (forward, inverse) = transforms(points);
    let mut masses = forward.make_input_vec();
    let mut spectrum = forward.make_output_vec();
    let mut product = Product::new(spectrum.len());
    let fft_error = 4.0 * f64::EPSILON * (points as f64).log2();
    for part in parts {
        masses.fill(0.0);
        let start = part.places.first().copied().unwrap_or(0);
        let mut slot = start.rem_euclid(points as i64) as usize;
        for mass in &part.mass {
            masses[slot] += mass;
            slot = if slot + 1 == points { 0 } else { slot + 1 };
        }
        let norm = masses.iter().map(|mass| mass * mass).sum::<f64>().sqrt();
        forward.process(&mut masses, &mut spectrum).ok()?;
        let error = fft_error * norm * (points as f64).sqrt() + part.rounding;
        product.multiply(&spectrum, error, part.count);
    }
    let Powers { mut values, error_sum, energy } = product.powers();
    // The two real bins of a real transform.
    values[0].im = 0.0;
    if let Some(last) = values.last_mut() {
        last.im = 0.0;
    }
    inverse.process(&mut values, &mut masses).ok()?;
    let scale = 1.0 / points as f64;
    masses.iter_mut().for_each(|mass| *mass *= scale);
    masses.rotate_left(first.rem_euclid(points as i64) as usize);
    let noise = 2.0 * error_sum * scale + fft_error * (2.0 * energy * scale).sqrt();
    noise.is_finite().then_some((Masses::Points(masses), noise))
}

/// A product of powers of spectra: ln modulus, ln of modulus plus error, phase.
struct Product {
    bins: Vec<(f64, f64, f64)>,
    count: f64,
}

/// The product's values, the sum of their errors, and the sum of their squares.
struct Powers {
    values: Vec<Complex64>,
    error_sum: f64,
    energy: f64,
}

impl Product {
    fn new(bins: usize) -> Self {
        Self { bins: vec![(0.0, 0.0, 0.0); bins], count: 0.0 }
    }

    /// Multiplies by `spectrum`, each value of which is true to `error`, `count` times.
    fn multiply(&mut self, spectrum: &[Complex64], error: f64, count: f64) {
        self.count += count;
        // Most of the spectrum vanishes in a large power: no logarithm needed to see it.
        let vanishing = ((NEGLIGIBLE / count).exp() - error).max(0.0).powi(2);
        for (total, value) in self.bins.iter_mut().zip(spectrum) {
            let square = value.norm_sqr();
            if square <= vanishing || total.1 <= NEGLIGIBLE {
                total.1 = f64::NEG_INFINITY;
                continue;
            }
            let modulus = square.sqrt();
            total.0 += count * modulus.ln();
            total.1 += count * (modulus + error).ln();
            total.2 += count * value.arg();
        }
    }

    fn powers(self) -> Powers {
        let phase_error = 16.0 * f64::EPSILON * (1.0 + self.count);
        let (mut error_sum, mut energy) = (0.0, 0.0);
        let value = |(ln_modulus, ln_safe, phase): (f64, f64, f64)| {
            if ln_safe <= NEGLIGIBLE {
                error_sum += NEGLIGIBLE.exp();
                return Complex64::default();
            }
            let modulus = ln_modulus.exp();
            error_sum += ln_safe.exp() - modulus + phase_error * ln_safe.exp();
            energy += modulus * modulus;
            Complex64::from_polar(modulus, phase)
        };
        let values = self.bins.into_iter().map(value).collect();
        Powers { values, error_sum, energy }
    }
}

/// The smallest of 2ᵃ, 3·2ᵃ, 5·2ᵃ, 9·2ᵃ, 15·2ᵃ that holds `wanted` points.
fn transform_length(wanted: usize) -> usize {
    [1usize, 3, 5, 9, 15]
        .iter()
        .map(|&odd| odd * wanted.div_ceil(odd).next_power_of_two())
        .filter(|length| length % 2 == 0)
        .min()
        .unwrap_or_else(|| wanted.next_power_of_two())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Release;
    use crate::pld::lattice::{LatticePair, Mesh};
    use crate::pld::loss::{Direction, Loss};
    use proptest::prelude::*;

    /// One release's masses, tilted by e^{λL}.
    fn part(rate: f64, sigma: f64, mesh: Mesh, tilt: f64, count: f64) -> TiltedPart {
        let loss = Loss::new(Release::Sampled { rate, sigma }, Direction::Remove);
        let lattice = LatticePair::new(&loss, mesh, 8.0).upper;
        let lift =
            |(place, ln_mass): (&i64, &f64)| (ln_mass + tilt * mesh.step * *place as f64).exp();
        let mass: Vec<f64> = lattice.places.iter().zip(&lattice.ln_mass).map(lift).collect();
        let total: f64 = mass.iter().sum();
        let mass = mass.iter().map(|mass| mass / total).collect();
        TiltedPart::trimmed(&lattice.places, mass, 1e-14, count)
    }

    /// q, σ, h, λ, T and the core of cells that widen.
    const CASES: [(f64, f64, f64, f64, f64, Option<i64>); 9] = [
        (0.001, 2.0, 4e-5, 20.0, 1e6, None),
        (0.01, 1.0, 1e-3, 12.0, 2e5, None),
        (0.3, 4.0, 2e-3, 5.0, 3e3, None),
        (0.002, 0.7, 1e-4, 3.0, 1e6, None),
        (0.001, 2.0, 4e-5, 20.0, 1e6, Some(12)),
        (0.01, 1.0, 1e-3, 5.0, 2e5, Some(12)),
        (0.3, 4.0, 2e-3, 5.0, 3e3, Some(40)),
        (0.002, 0.7, 1e-4, 3.0, 1e6, Some(12)),
        (2.56e-4, 0.7, 2e-5, 5.0, 7e4, Some(25)),
    ];

    /// The same masses with a place for every point.
    fn with_all_points(part: &TiltedPart) -> TiltedPart {
        let (first, last) = (part.places[0], part.places[part.places.len() - 1]);
        let mut mass = vec![0.0; (last - first + 1) as usize];
        for (place, value) in part.places.iter().zip(&part.mass) {
            mass[(place - first) as usize] = *value;
        }
        let places = (first..=last).collect();
        TiltedPart { places, mass, rounding: part.rounding, count: part.count }
    }

    /// No value of the whole spectrum beyond the proved wave is above the bound.
    #[test]
    fn what_is_called_negligible_is() {
        let points = 1 << 16;
        for (rate, sigma, step, tilt, count, core) in CASES {
            let mesh = Mesh { step, core };
            let part = part(rate, sigma, mesh, tilt, count);
            let name = format!("{rate} {sigma} {mesh:?}");
            let highest = highest_wave(&part, points).unwrap_or_else(|| panic!("{name}: no bound"));
            let mut planner = RealFftPlanner::new();
            let forward = planner.plan_fft_forward(points);
            let (mut masses, mut spectrum) = (vec![0.0; points], forward.make_output_vec());
            for (place, mass) in part.places.iter().zip(&part.mass) {
                masses[place.rem_euclid(points as i64) as usize] += mass;
            }
            forward.process(&mut masses, &mut spectrum).unwrap();
            let louder = |value: &Complex64| count * value.norm().ln();
            let loudest = spectrum[highest..].iter().map(louder).fold(-1e300, f64::max);
            assert!(loudest <= NEGLIGIBLE + count * 1e-12, "{name}: {loudest}");
            assert!(highest < points / 20, "{name}: {highest} waves would not pay");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Whatever the masses are (combs, gaps, more than 1 in all), what is called negligible is.
        #[test]
        fn no_masses_fool_the_bound(
            gaps in proptest::collection::vec((0u32..12, 0.01..1.0f64), 20..200),
            (width, wide) in (2i64..4, 0u32..16),
            (comb, height) in (1usize..24, 0.0..6.0f64),
            excess in 0u32..4,
            ln_count in 2.0..14.0f64,
        ) {
            let mut place = -50;
            let places = gaps.iter().map(|(gap, _)| {
                place += if *gap < wide { width } else { 1 };
                place
            });
            let places: Vec<i64> = places.collect();
            let tooth = |at: usize| if at.is_multiple_of(comb) { height.exp() } else { 1.0 };
            let mass = gaps.iter().enumerate().map(|(at, (_, mass))| mass * tooth(at));
            let mass: Vec<f64> = mass.collect();
            let total: f64 = mass.iter().sum::<f64>() / if excess == 0 { 1.2 } else { 1.0 };
            let mass = mass.iter().map(|mass| mass / total).collect();
            let part = TiltedPart { places, mass, rounding: 0.0, count: ln_count.exp() };
            let points = 2048;
            if let Some(highest) = highest_wave(&part, points) {
                for k in highest..=points / 2 {
                    let omega = 2.0 * std::f64::consts::PI * k as f64 / points as f64;
                    let waves = part.places.iter().zip(&part.mass);
                    let value: Complex64 = waves
                        .map(|(place, mass)| Complex64::from_polar(*mass, -omega * *place as f64))
                        .sum();
                    let ln_power = part.count * value.norm().ln();
                    prop_assert!(ln_power <= NEGLIGIBLE + 1e-9 * part.count, "{k}: {ln_power}");
                }
            }
        }
    }

    /// A part of few neighbouring points in a window of billions of them: no transform of the window.
    #[test]
    fn no_transform_is_longer_than_allowed() {
        let part =
            |count| TiltedPart { places: vec![0, 1], mass: vec![0.5, 0.5], rounding: 0.0, count };
        let masses = |wanted| sum_masses(&[part(2.0)], 0, wanted, (1.0, 1e-3));
        assert!(masses(1 << 12).is_some());
        assert!(masses(MOST_POINTS + 1).is_none());
        // Nor tens of millions of waves, although a transform would have taken longer.
        assert!(sum_masses(&[part(2000.0)], 0, 1 << 30, (1.0, 1e-3)).is_none());
        assert!(sum_masses(&[part(2000.0)], 0, 1 << 23, (1.0, 1e-3)).is_some());
    }

    /// Waves and points give the same sums above any node, within both bounds.
    #[test]
    fn waves_sum_as_points_do() {
        for (rate, sigma, step, tilt, count, core) in CASES {
            let mesh = Mesh { step, core };
            let parts = [part(rate, sigma, mesh, tilt, count)];
            assert_eq!(parts[0].is_even(), mesh.core.is_none());
            let places = parts[0].places.iter().zip(&parts[0].mass);
            let mean: f64 = places.map(|(place, mass)| mass * *place as f64).sum();
            let points = 1 << 16;
            let first = (count * mean) as i64 - points as i64 / 2;
            let highest = highest_wave(&parts[0], points).unwrap();
            let (waves, wave_noise) =
                sum_waves(&parts, first, points, highest, (tilt, step)).unwrap();
            let (masses, noise) = sum_points(&[with_all_points(&parts[0])], first, points).unwrap();
            let (Masses::Waves(waves), Masses::Points(masses)) = (waves, masses) else {
                panic!("both ways")
            };
            for node in [first, first + 1000, first + points as i64 / 2, first + 50_000] {
                let after = &masses[(node - first + 1) as usize..];
                let (mut mass, mut height, mut weights) = (0.0, 0.0, 0.0);
                for (at, value) in after.iter().enumerate() {
                    let distance = step * (at + 1) as f64;
                    mass += value * (-tilt * distance).exp();
                    height += value * (-tilt * distance).exp() * -(-distance).exp_m1();
                    weights += (-tilt * distance).exp();
                }
                let most = waves.above(node, wave_noise);
                let least = waves.above(node, -wave_noise);
                let slack = noise * weights + 1e-13;
                let name = format!("{mesh:?} {node}");
                assert!(mass <= most.mass + slack, "{name}: {mass}");
                assert!(mass >= least.mass - slack, "{name}: {mass}");
                assert!(
                    height <= most.height + slack && height >= least.height - slack,
                    "{name}: {height} outside {} to {}",
                    least.height,
                    most.height
                );
                assert!(most.mass - least.mass <= 1e-4 * mass.abs() + 2.0 * slack, "{name}");
            }
        }
    }

    /// Masses by a transform of so many points.
    fn masses(points: usize) -> Vec<u64> {
        let mass = (0..400).map(|at| (-0.01 * f64::from(at)).exp() * 0.00985).collect();
        let part = TiltedPart { places: (0..400).collect(), mass, rounding: 0.0, count: 30.0 };
        let Some((Masses::Points(masses), _)) = sum_points(&[part], 0, points) else {
            panic!("points were asked for")
        };
        masses.into_iter().map(f64::to_bits).collect()
    }

    /// A planner that has made others before builds on them, and gives other last digits.
    #[test]
    fn a_transform_has_the_bits_of_its_length_alone() {
        let odd = [1, 3, 5, 9, 15];
        let lengths = || (8..17).flat_map(move |power| odd.map(|odd| odd << power));
        let alone: Vec<_> = lengths()
            .map(|points| std::thread::spawn(move || masses(points)).join().unwrap())
            .collect();
        let together = |lengths: Vec<usize>| {
            std::thread::spawn(move || lengths.into_iter().map(masses).collect::<Vec<_>>()).join()
        };
        assert!(together(lengths().collect()).unwrap() == alone);
        let mut backwards = together(lengths().rev().collect()).unwrap();
        backwards.reverse();
        assert!(backwards == alone);
    }
}
