//! Where an axis is marked, and what the marks say.
//!
//! Ticks are round numbers that cover the data: the axis runs from the first to the last. Linear
//! axes take the step among {1, 2, 2.5, 5}·10ᵏ that wastes least room at about the wished number of
//! ticks; log axes take powers of ten, or 1-2-5 where the data spans few decades, or linear steps
//! where it spans less than one. There are always 3 to 10.

use crate::format::{group, with_minus};
use crate::svg::Label;

/// What may be drawn: beyond 10^±200, sums and squares in the layout would leave the f64 range.
pub(crate) const LARGEST: f64 = 1e200;

const MOST: usize = 10;
const FEWEST: usize = 3;

/// The marks of an axis, ascending, and the labels beside the major ones.
#[derive(Clone, Debug)]
pub(crate) struct Ticks {
    pub(crate) major: Vec<(f64, Label)>,
    /// Unlabelled marks between powers of ten.
    pub(crate) minor: Vec<f64>,
}

impl Ticks {
    /// First and last tick: the span of the axis.
    pub(crate) fn span(&self) -> (f64, f64) {
        let at = |tick: Option<&(f64, Label)>| tick.map_or(0.0, |t| t.0);
        (at(self.major.first()), at(self.major.last()))
    }
}

/// Round ticks over `[lo, hi]`, about `wished` of them. Needs |lo|, |hi| ≤ [`LARGEST`].
pub(crate) fn linear(lo: f64, hi: f64, wished: usize) -> Ticks {
    let (lo, hi) = widen(lo, hi);
    let decade = (hi - lo).log10().floor() as i32;
    let mut best: Option<(f64, Vec<(f64, Label)>)> = None;
    for exponent in decade - 2..=decade + 1 {
        for mantissa in [1.0, 2.0, 2.5, 5.0] {
            let step = mantissa * 10f64.powi(exponent);
            // A hair of slack: 0.3/0.1 is 2.9999…, and the tick at 0.3 does cover it.
            let first = (lo / step + 1e-9).floor();
            let last = (hi / step - 1e-9).ceil();
            let count = (last - first) as usize + 1;
            if !(FEWEST..=MOST).contains(&count) {
                continue;
            }
            let waste = ((last - first) * step - (hi - lo)) / (hi - lo);
            let odd = if mantissa == 2.5 { 0.05 } else { 0.0 };
            let score = waste + 0.06 * count.abs_diff(wished) as f64 + odd;
            if best.as_ref().is_none_or(|(least, _)| score < *least) {
                let multiples: Vec<f64> =
                    (0..count).map(|i| (first + i as f64) * mantissa).collect();
                best = Some((score, label_multiples(&multiples, exponent, mantissa == 2.5)));
            }
        }
    }
    Ticks { major: best.map(|(_, ticks)| ticks).unwrap_or_default(), minor: Vec::new() }
}

/// Ticks of a log axis over `[lo, hi]`. Needs 1/[`LARGEST`] ≤ lo ≤ hi ≤ [`LARGEST`].
pub(crate) fn log(lo: f64, hi: f64, wished: usize) -> Ticks {
    let (lo, hi) = if hi / lo < 1.0 + 1e-9 { (lo / 2.0, hi * 2.0) } else { (lo, hi) };
    let (floor, ceil) = ((lo.log10() + 1e-9).floor() as i32, (hi.log10() - 1e-9).ceil() as i32);
    let steps = one_two_five(lo, hi, floor, ceil);
    let plain_step = linear(lo, hi, wished);
    // Whole decades, or nearly, need no marks in between.
    let decades = f64::from(ceil - floor);
    let whole = decades >= 3.0 && decades - (hi / lo).log10() < 0.35;
    if !whole && (FEWEST..=MOST.min(wished + 2)).contains(&steps.len()) {
        let minor = minor_marks(floor, ceil, steps[0].0, steps[steps.len() - 1].0);
        return Ticks { major: steps, minor };
    }
    if steps.len() < FEWEST && plain_step.span().0 > 0.0 {
        return plain_step;
    }
    let stride = [1, 2, 3, 4, 5, 10, 20, 50, 100]
        .into_iter()
        .find(|s| powers(floor, ceil, *s).len() <= (wished + 2).min(MOST))
        .unwrap_or(100);
    let mut powers = powers(floor, ceil, stride);
    // Within one decade, should linear steps have started at zero.
    while powers.len() < FEWEST {
        powers.push(powers[powers.len() - 1] + stride);
    }
    let as_power = powers.iter().any(|p| !(-3..=5).contains(p));
    let label = |p: i32| if as_power { power_label(None, p) } else { plain_label(1.0, p) };
    let ends = (10f64.powi(powers[0]), 10f64.powi(powers[powers.len() - 1]));
    let minor = if stride == 1 && powers.len() <= 8 {
        minor_marks(floor, powers[powers.len() - 1], ends.0, ends.1)
    } else {
        Vec::new()
    };
    Ticks { major: powers.into_iter().map(|p| (10f64.powi(p), label(p))).collect(), minor }
}

/// Multiples of `stride` that cover the decades.
fn powers(floor: i32, ceil: i32, stride: i32) -> Vec<i32> {
    let first = floor.div_euclid(stride);
    let last = -(-ceil).div_euclid(stride);
    (first..=last).map(|k| k * stride).collect()
}

fn one_two_five(lo: f64, hi: f64, floor: i32, ceil: i32) -> Vec<(f64, Label)> {
    if ceil - floor > 4 {
        return Vec::new();
    }
    let all: Vec<(f64, i32)> =
        (floor..=ceil).flat_map(|p| [1.0, 2.0, 5.0].map(|m| (m, p))).collect();
    let value = |(m, p): (f64, i32)| m * 10f64.powi(p);
    let first = all.iter().rposition(|t| value(*t) <= lo * (1.0 + 1e-9)).unwrap_or(0);
    let last = all.iter().position(|t| value(*t) >= hi * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
    let plain = all[first..=last].iter().all(|t| (1e-3..1e6).contains(&value(*t)));
    let label = |(m, p)| if plain { plain_label(m, p) } else { power_label(Some(m), p) };
    all[first..=last].iter().map(|t| (value(*t), label(*t))).collect()
}

fn minor_marks(floor: i32, ceil: i32, lo: f64, hi: f64) -> Vec<f64> {
    (floor..=ceil)
        .flat_map(|p| (2..10).map(move |m| f64::from(m) * 10f64.powi(p)))
        .filter(|v| *v > lo && *v < hi)
        .collect()
}

/// 3·10⁻² as "0.03".
fn plain_label(mantissa: f64, power: i32) -> Label {
    let decimals = (-power).max(0) as usize;
    Label::from(group(&format!("{:.decimals$}", mantissa * 10f64.powi(power))).as_str())
}

/// "10" with its exponent, after a mantissa other than one.
fn power_label(mantissa: Option<f64>, power: i32) -> Label {
    let lead = mantissa.filter(|m| *m != 1.0).map_or(String::new(), |m| format!("{m}×"));
    Label { text: format!("{lead}10"), exponent: Some(with_minus(power.to_string())) }
}

/// Labels for `multiples`·10^`exponent`: plain decimals, or one common power of ten.
fn label_multiples(multiples: &[f64], exponent: i32, half: bool) -> Vec<(f64, Label)> {
    let scale = |m: f64| {
        // Dividing by a power of ten is exact where multiplying by its inverse is not.
        if exponent < 0 { m / 10f64.powi(-exponent) } else { m * 10f64.powi(exponent) }
    };
    let largest = multiples.iter().fold(0.0_f64, |a, m| a.max(scale(*m).abs()));
    let top = (largest.log10() + 1e-9).floor() as i32;
    let label = |m: f64| {
        if (-3..6).contains(&top) {
            let decimals = (-exponent + i32::from(half)).max(0) as usize;
            Label::from(group(&with_minus(format!("{:.decimals$}", scale(m)))).as_str())
        } else if m == 0.0 {
            Label::from("0")
        } else {
            let decimals = (top - exponent + i32::from(half)).max(0) as usize;
            let shown = m * 10f64.powi(exponent - top);
            let text = format!("{}×10", with_minus(format!("{shown:.decimals$}")));
            Label { text, exponent: Some(with_minus(top.to_string())) }
        }
    };
    multiples.iter().map(|m| (scale(*m), label(*m))).collect()
}

/// A range with room in it: one value, or values equal to rounding, get a neighbourhood.
fn widen(lo: f64, hi: f64) -> (f64, f64) {
    let size = lo.abs().max(hi.abs());
    if size < LARGEST.recip() {
        // Zero, or too small to divide by.
        (-1.0, 1.0)
    } else if hi - lo > 1e-9 * size {
        (lo, hi)
    } else {
        (lo - 0.1 * size, hi + 0.1 * size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(ticks: &Ticks) -> Vec<String> {
        let exponent = |l: &Label| l.exponent.as_ref().map_or(String::new(), |e| format!("^{e}"));
        ticks.major.iter().map(|(_, l)| format!("{}{}", l.text, exponent(l))).collect()
    }

    #[test]
    fn labels_are_the_expected_ones() {
        assert_eq!(
            texts(&linear(0.0, 350.0, 7)),
            ["0", "50", "100", "150", "200", "250", "300", "350"]
        );
        assert_eq!(texts(&linear(-0.31, 0.4, 5)), ["−0.4", "−0.2", "0.0", "0.2", "0.4"]);
        assert_eq!(
            texts(&linear(0.0, 2e6, 4)),
            ["0", "0.5×10^6", "1.0×10^6", "1.5×10^6", "2.0×10^6"]
        );
        assert_eq!(
            texts(&log(1e-4, 10.0, 7)),
            ["10^−4", "10^−3", "10^−2", "10^−1", "10^0", "10^1"]
        );
        assert_eq!(
            texts(&log(500.0, 20_000.0, 7)),
            ["500", "1000", "2000", "5000", "10\u{202f}000", "20\u{202f}000"]
        );
        assert_eq!(texts(&log(0.01, 100.0, 5)), ["0.01", "0.1", "1", "10", "100"]);
    }

    fn check(ticks: &Ticks, lo: f64, hi: f64) -> Result<(), TestCaseError> {
        let n = ticks.major.len();
        prop_assert!((3..=10).contains(&n), "{} ticks", n);
        prop_assert!(ticks.major.windows(2).all(|w| w[0].0 < w[1].0), "{:?}", ticks);
        let labels = texts(ticks);
        prop_assert!(labels.windows(2).all(|w| w[0] != w[1]), "{:?}", labels);
        let slack = 1e-8 * (hi - lo);
        let (first, last) = ticks.span();
        prop_assert!(first <= lo + slack && last >= hi - slack, "{lo}..{hi}: {:?}", ticks);
        Ok(())
    }

    proptest! {
        #[test]
        fn linear_ticks_cover_the_range(lo in -1e3_f64..1e3, span in 0.0_f64..1.0,
                                        scale in -190_i32..190, wished in 3_usize..=10) {
            let unit = 10f64.powi(scale);
            let (lo, hi) = (lo * unit, (lo + span) * unit);
            check(&linear(lo, hi, wished), lo, hi)?;
        }

        #[test]
        fn log_ticks_cover_the_range(lo in -200.0_f64..200.0, span in 0.0_f64..400.0,
                                     shrink in 0_i32..6, wished in 3_usize..=10) {
            let (lo, hi) = (lo, (lo + span / 10f64.powi(shrink)).min(200.0));
            let (lo, hi) = (10f64.powf(lo), 10f64.powf(hi));
            let ticks = log(lo, hi, wished);
            check(&ticks, lo, hi)?;
            prop_assert!(ticks.span().0 > 0.0);
        }
    }
}
