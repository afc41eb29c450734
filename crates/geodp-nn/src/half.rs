//! Half precision for storage: IEEE 754 binary16, 11 significant bits, half the memory of f32.
//!
//! Integer and f32 operations alone, so that the bits are the same with and without a CPU's own
//! conversion instructions, with which kernels decode. Values at or above 65,520 have no binary16 and become infinite.

/// Nearest binary16 of `value`, ties to even.
pub fn encode(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if magnitude < 0x3880_0000 {
        // Below 2⁻¹⁴: a multiple of 2⁻²⁴. Adding ½ in f32 leaves exactly those bits, rounded.
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | (rounded.to_bits() - 0x3f00_0000) as u16;
    }
    // Exponent bias 127 → 15, thirteen bits rounded away; a carry moves on into the exponent.
    let odd = (magnitude >> 13) & 1;
    sign | ((magnitude + 0x0fff + odd - 0x3800_0000) >> 13) as u16
}

/// The value of a binary16, exactly.
#[inline(always)]
pub fn decode(half: u16) -> f32 {
    // The exponent's bias is 112 less than that of f32; the product is exact, subnormals included. What is not
    // finite has the largest exponent in both formats.
    const TWO_112: f32 = f32::from_bits((127 + 112) << 23);
    let magnitude = (f32::from_bits(u32::from(half & 0x7fff) << 13) * TWO_112).to_bits();
    let special = if half & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude | special | u32::from(half & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every finite half, by the definition of the format.
    fn by_definition(half: u16) -> f64 {
        let (sign, exponent, fraction) = (half >> 15, (half >> 10) & 31, f64::from(half & 0x3ff));
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(-24),
            _ => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
        };
        if sign == 1 { -magnitude } else { magnitude }
    }

    #[test]
    fn every_finite_half_survives() {
        for half in (0..=u16::MAX).filter(|half| (half >> 10) & 31 != 31) {
            assert_eq!(f64::from(decode(half)), by_definition(half), "{half:04x}");
            assert_eq!(encode(decode(half)), half, "{half:04x}");
        }
    }

    #[test]
    fn what_lies_between_goes_to_the_nearest_and_ties_to_even() {
        for half in 0..0x7bffu16 {
            let (below, above) = (decode(half), decode(half + 1));
            let middle = (below + above) / 2.0;
            let even = if half % 2 == 0 { half } else { half + 1 };
            assert_eq!(encode(middle), even, "{half:04x}");
            assert_eq!(encode(f32::from_bits(middle.to_bits() - 1)), half, "{half:04x}");
            assert_eq!(encode(f32::from_bits(middle.to_bits() + 1)), half + 1, "{half:04x}");
            assert_eq!(encode(-middle), even | 0x8000);
        }
        assert_eq!((encode(65_519.0), encode(65_520.0)), (0x7bff, 0x7c00));
        assert_eq!((encode(f32::INFINITY), encode(f32::NAN)), (0x7c00, 0x7e00));
        assert_eq!((decode(0x7c00), decode(0xfc00)), (f32::INFINITY, f32::NEG_INFINITY));
        assert!(decode(0x7e00).is_nan());
    }
}
