//! The rare rounding that f64 cannot decide: Box–Muller with 320-bit uniforms, in integers.
//!
//! A pair of normals is Z₁ = √(2L)·cos(πΘ/2), Z₂ = √(2L)·sin(πΘ/2) with L = −ln U and Θ = q + r
//! quarter turns, q in {0, 1, 2, 3}, r in [−½, ½). round(S·|Z|) is the k for which
//! (2k − 1)² ≤ 8·S²·P < (2k + 1)², P = L·cos² or L·sin²: no root is taken, and S² is exact, so
//! P alone has an error. cos²(πr/2) = (1 + cos πr)/2, sin²(πr/2) = (1 − cos πr)/2: one cosine
//! serves both.
//!
//! # Error of P, in units of 2⁻¹⁹²
//! - U keeps 192 bits behind its leading one: 1 in L. e·ln 2 with e ≤ 129: 129. The series of
//!   atanh: each step of Horner's scheme loses 2 and shrinks what came before by s² < 0.03; with
//!   the loss in s and s² and the factor 2, less than 16. So L is right to 146, L < 90.
//! - r keeps 192 bits: 5 in πr, 17 in its square. Each of 27 steps loses 2 and multiplies what came
//!   before by at most 1.24 (the last one), 0.21 (the one before), …: less than 48 in the cosine,
//!   25 in cos² or sin².
//! - P = L·c²: 146 + 90·25 + 1 < 2¹².
//!
//! [`ERROR`] = 2¹⁴. Both ends of P ± ERROR must give the same k, else the draw is left over.
//!
//! # What is left over
//! P has the density e⁻ᴾ/√(πP). Within 2⁻¹⁷⁸ of one of the boundaries h²/(2S²), h = ½, 3/2, …, it
//! lies with probability below 4·2⁻¹⁷⁸·Σ √(2/π)·S/h·e^{−h²/2S²} ≤ 2⁻¹⁷⁰·S for S ≤ 2⁴⁰: 2⁻¹³⁰. U has
//! more than 128 leading zeros with probability 2⁻¹²⁹ at most. Together less than
//! [`LEFT_OVER_PER_DRAW`](super::LEFT_OVER_PER_DRAW) = 2⁻¹²⁸.

use super::fixed::{Fixed, multiply, shifted};
use std::cmp::Ordering;

/// Bound on the error of P, in units of 2⁻¹⁹²: four times what is proved above.
const ERROR: u64 = 1 << 14;
/// The most leading zeros of U that the error's proof allows.
const MOST_ZEROS: u32 = 128;
/// s^(2n+1)/(2n+1) < 2⁻¹⁹² for s ≤ 0.1716.
const ATANH_TERMS: u64 = 39;
/// (π/2)^(2n)/(2n)! < 2⁻¹⁹².
const COSINE_TERMS: u64 = 27;

/// Random bits of one uniform, most significant word first: the word that the fast route saw, then
/// four more.
pub(crate) type Uniform = [u64; 5];

/// A rounded draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rounded {
    /// The integer nearest to S·Z.
    pub(crate) value: i64,
    /// Whether that is proved.
    pub(crate) certain: bool,
}

/// round(S·Z₁) and round(S·Z₂) for 1 ≤ S ≤ 2⁴⁰.
pub(crate) fn round_pair(first: &Uniform, second: &Uniform, scale: f64) -> [Rounded; 2] {
    let half_square = minus_ln(first);
    let (cosine, r_is_negative) = cosine_of_remainder(second);
    let large = halved(Fixed::ONE.add(cosine));
    let small = halved(Fixed::ONE.minus(cosine));
    let quadrant = second[0] >> 62;
    // cos and sin of a quadrant's remainder, in the order and with the signs of the quadrant.
    let (of_cosine, of_sine) = if quadrant & 1 == 0 { (large, small) } else { (small, large) };
    let cosine_negative = match quadrant {
        0 => false,
        1 => !r_is_negative,
        2 => true,
        _ => r_is_negative,
    };
    let sine_negative = match quadrant {
        0 => r_is_negative,
        1 => false,
        2 => !r_is_negative,
        _ => true,
    };
    [(of_cosine, cosine_negative), (of_sine, sine_negative)].map(|(square, negative)| {
        let rounded = round_root(half_square.times(square), scale);
        Rounded { value: if negative { -rounded.value } else { rounded.value }, ..rounded }
    })
}

/// −ln U for U in (0, 1): e·ln 2 − ln m with U = m·2⁻ᵉ, by the series of atanh.
pub(super) fn minus_ln(uniform: &Uniform) -> Fixed {
    let mut bits = *uniform;
    // Beyond the proof: made the smallest U that it covers.
    bits[2] |= u64::from(leading_zeros(&bits) > MOST_ZEROS) << 63;
    let zeros = leading_zeros(&bits);
    let exponent = u64::from(zeros) + 1;
    let fraction = shift_left(bits, zeros + 1);
    let m = Fixed([fraction[2], fraction[1], fraction[0], 1]);
    const SQRT_2_FRACTION: u64 = 0x6a09_e667_f3bc_c908;
    if fraction[0] < SQRT_2_FRACTION {
        let ln_m = twice_atanh(m.minus(Fixed::ONE), m.add(Fixed::ONE));
        Fixed::LN_2.times_integer(exponent).minus(ln_m)
    } else {
        let two = Fixed::ONE.add(Fixed::ONE);
        let minus_ln_half_m = twice_atanh(two.minus(m), two.add(m));
        Fixed::LN_2.times_integer(exponent - 1).add(minus_ln_half_m)
    }
}

/// 2·atanh(a/b) for a/b ≤ 0.1716.
fn twice_atanh(a: Fixed, b: Fixed) -> Fixed {
    let s = a.over(b);
    let square = s.times(s);
    let mut sum = Fixed::ZERO;
    for term in (0..ATANH_TERMS).rev() {
        sum = Fixed::ONE.over_integer(2 * term + 1).add(square.times(sum));
    }
    let atanh = s.times(sum);
    atanh.add(atanh)
}

/// cos(π·r) ≥ 0 and whether r < 0, for the remainder r + ½ that all bits but the first two give.
pub(super) fn cosine_of_remainder(uniform: &Uniform) -> (Fixed, bool) {
    let bits = shift_left(*uniform, 2);
    let half = Fixed([0, 0, 1 << 63, 0]);
    let above = Fixed([bits[2], bits[1], bits[0], 0]);
    let negative = above.compare(half) == Ordering::Less;
    let size = if negative { half.minus(above) } else { above.minus(half) };
    let angle = Fixed::PI.times(size);
    let square = angle.times(angle);
    let mut cosine = Fixed::ONE;
    for term in (1..=COSINE_TERMS).rev() {
        let divisor = (2 * term - 1) * (2 * term);
        cosine = Fixed::ONE.minus(square.times(cosine).over_integer(divisor));
    }
    (cosine, negative)
}

/// round(√(2P)·S), certain if all of P ± [`ERROR`] agrees.
fn round_root(product: Fixed, scale: f64) -> Rounded {
    let margin = Fixed([ERROR, 0, 0, 0]);
    let [value, low, high] = [product, product.minus(margin), product.add(margin)]
        .map(|product| round_exact_root(product, scale));
    Rounded { value, certain: low == value && high == value }
}

/// The k with (2k − 1)² ≤ 8·S²·P < (2k + 1)², in integers: with S = M·2^e both sides are multiplied
/// by 2^(192 − 2e).
fn round_exact_root(product: Fixed, scale: f64) -> i64 {
    let mantissa = scale.to_bits() & ((1 << 52) - 1) | 1 << 52;
    let exponent = (scale.to_bits() >> 52) as i32 - 1075;
    let places = (192 - 2 * exponent) as u32;
    let square = u128::from(mantissa) * u128::from(mantissa);
    let left = multiply(&product.0, &[(square << 3) as u64, (square >> 61) as u64]);
    let at_least = |odd: i64| {
        let right = shifted(odd.unsigned_abs() as u128 * odd.unsigned_abs() as u128, places);
        left.iter().rev().cmp(right.iter().rev()) != Ordering::Less
    };
    let mut k = ((2.0 * product.to_f64()).sqrt() * scale).round() as i64;
    while at_least(2 * k + 1) {
        k += 1;
    }
    while k > 0 && !at_least(2 * k - 1) {
        k -= 1;
    }
    k
}

fn halved(value: Fixed) -> Fixed {
    value.over_integer(2)
}

fn leading_zeros(bits: &Uniform) -> u32 {
    let zero_words = bits.iter().take_while(|word| **word == 0).count();
    64 * zero_words as u32 + bits.get(zero_words).map_or(0, |word| word.leading_zeros())
}

/// The bits moved up by `count` ≤ 320 places; what comes in is zero.
fn shift_left(bits: Uniform, count: u32) -> Uniform {
    let (words, within) = ((count / 64) as usize, count % 64);
    let word = |i: usize| bits.get(i + words).copied().unwrap_or(0);
    std::array::from_fn(|i| {
        let next = if within == 0 { 0 } else { word(i + 1) >> (64 - within) };
        word(i) << within | next
    })
}
