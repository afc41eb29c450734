//! Fixed-point numbers of 64 integer and 192 fraction bits: enough arithmetic to decide a rounding.
//!
//! Everything is unsigned and truncates, so that errors are counted in units of 2⁻¹⁹² and add up
//! by hand: a product, a quotient and a division by a small number each lose less than one unit.
//! Plain loops over limbs: this code runs for a few draws in a million.

use std::cmp::Ordering;

/// Limbs of a number, least significant first; the last one is the integer part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixed(pub(crate) [u64; 4]);

impl Fixed {
    pub(crate) const ZERO: Fixed = Fixed([0; 4]);
    pub(crate) const ONE: Fixed = Fixed([0, 0, 0, 1]);
    /// ln 2, truncated.
    pub(crate) const LN_2: Fixed =
        Fixed([0x40f3_4326_7298_b62d, 0xc9e3_b398_03f2_f6af, 0xb172_17f7_d1cf_79ab, 0]);
    /// π, truncated.
    pub(crate) const PI: Fixed =
        Fixed([0xa409_3822_299f_31d0, 0x1319_8a2e_0370_7344, 0x243f_6a88_85a3_08d3, 3]);

    /// Sum; the integer part must have room.
    pub(crate) fn add(self, other: Fixed) -> Fixed {
        let mut carry = false;
        Fixed(std::array::from_fn(|i| {
            let (sum, first) = self.0[i].overflowing_add(other.0[i]);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            sum
        }))
    }

    /// Difference, or zero where it would be negative.
    pub(crate) fn minus(self, other: Fixed) -> Fixed {
        let mut borrow = false;
        let limbs = std::array::from_fn(|i| {
            let (difference, first) = self.0[i].overflowing_sub(other.0[i]);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            borrow = first || second;
            difference
        });
        if borrow { Fixed::ZERO } else { Fixed(limbs) }
    }

    /// Product, truncated; the integer part must have room.
    pub(crate) fn times(self, other: Fixed) -> Fixed {
        let product = multiply(&self.0, &other.0);
        Fixed([product[3], product[4], product[5], product[6]])
    }

    /// Product with a small integer, exact; the integer part must have room.
    pub(crate) fn times_integer(self, factor: u64) -> Fixed {
        let product = multiply(&self.0, &[factor]);
        Fixed([product[0], product[1], product[2], product[3]])
    }

    /// Quotient by a small integer, truncated.
    pub(crate) fn over_integer(self, divisor: u64) -> Fixed {
        let mut limbs = [0; 4];
        let mut rest = 0_u64;
        for i in (0..4).rev() {
            let value = u128::from(rest) << 64 | u128::from(self.0[i]);
            limbs[i] = (value / u128::from(divisor)) as u64;
            rest = (value % u128::from(divisor)) as u64;
        }
        Fixed(limbs)
    }

    /// self/other for self < other < 2⁶², truncated; one bit at a time.
    pub(crate) fn over(self, other: Fixed) -> Fixed {
        let (mut rest, mut quotient) = (self, Fixed::ZERO);
        for _ in 0..192 {
            rest = rest.add(rest);
            quotient = quotient.add(quotient);
            if rest.compare(other) != Ordering::Less {
                rest = rest.minus(other);
                quotient.0[0] |= 1;
            }
        }
        quotient
    }

    /// Which is larger.
    pub(crate) fn compare(self, other: Fixed) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }

    /// The nearest f64, up to one unit in its last place.
    pub(crate) fn to_f64(self) -> f64 {
        const LIMB: f64 = 18_446_744_073_709_551_616.0;
        self.0.iter().fold(0.0, |low, limb| low / LIMB + *limb as f64)
    }
}

/// The whole product of two numbers given by limbs; eight limbs must hold it.
pub(crate) fn multiply(a: &[u64], b: &[u64]) -> [u64; 8] {
    let mut product = [0_u64; 8];
    for (i, x) in a.iter().enumerate() {
        let mut carry = 0_u128;
        for (j, y) in b.iter().enumerate() {
            carry += u128::from(*x) * u128::from(*y) + u128::from(product[i + j]);
            product[i + j] = carry as u64;
            carry >>= 64;
        }
        if let Some(next) = product.get_mut(i + b.len()) {
            *next = carry as u64;
        }
    }
    product
}

/// `value` shifted left by `bits`; eight limbs must hold it.
pub(crate) fn shifted(value: u128, bits: u32) -> [u64; 8] {
    let (limb, within) = ((bits / 64) as usize, bits % 64);
    let power = multiply(&[value as u64, (value >> 64) as u64], &[1 << within]);
    let mut result = [0; 8];
    result[limb..].copy_from_slice(&power[..8 - limb]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A number of 96 integer and fraction bits as the test's own integer.
    fn small(value: Fixed) -> u128 {
        u128::from(value.0[3]) << 64 | u128::from(value.0[2])
    }

    proptest! {
        #[test]
        fn small_numbers_agree_with_128_bit_integers(a in 0..1_u128 << 70, b in 1..1_u128 << 70) {
            let fixed = |x: u128| Fixed([0, 0, x as u64, (x >> 64) as u64]);
            prop_assert_eq!(small(fixed(a).add(fixed(b))), a + b);
            prop_assert_eq!(small(fixed(a).minus(fixed(b))), a.saturating_sub(b));
            prop_assert_eq!(small(fixed(a).over_integer(77)), a / 77);
            prop_assert_eq!(small(fixed(a).times_integer(77)), a * 77);
            let square = multiply(&[a as u64, (a >> 64) as u64], &[b as u64]);
            let low = (a & u128::from(u64::MAX)) * u128::from(b as u64);
            prop_assert_eq!(square[0], low as u64);
            prop_assert_eq!(shifted(a, 67)[1], (a << 3) as u64);
            prop_assert_eq!(shifted(a, 128)[2..4].to_vec(), vec![a as u64, (a >> 64) as u64]);
        }

        #[test]
        fn quotients_undo_products(a in any::<[u64; 3]>(), b in any::<[u64; 3]>()) {
            let below_one = |limbs: [u64; 3]| Fixed([limbs[0], limbs[1], limbs[2], 0]);
            let (a, b) = (below_one(a), below_one(b).add(Fixed::ONE));
            let back = a.over(b).times(b);
            // The quotient lost less than one unit, which times b < 2 is two, the product one.
            prop_assert!(a.minus(back).compare(Fixed([3, 0, 0, 0])) == Ordering::Less);
            prop_assert!(back.compare(a) != Ordering::Greater);
            prop_assert!((a.over(b).to_f64() - a.to_f64() / b.to_f64()).abs() < 1e-15);
        }
    }

    #[test]
    fn constants_are_those_of_the_standard_library() {
        assert_eq!(Fixed::LN_2.to_f64(), std::f64::consts::LN_2);
        assert_eq!(Fixed::PI.to_f64(), std::f64::consts::PI);
    }
}
