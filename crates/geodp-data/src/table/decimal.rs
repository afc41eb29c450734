//! Plain decimals, `-12.5`, as fast as they can be read.
//!
//! A whole number m below 2⁵³ and a power of ten up to 10²² are doubles exactly, so m/10ᵏ is rounded once:
//! the double nearest to what is written, as the standard library gives it (Clinger 1990). Whatever is
//! written otherwise, longer or with an exponent, is left to the standard library.

const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// The number, if these bytes are a decimal of at most 15 digits and nothing else.
#[inline]
pub(crate) fn decimal(bytes: &[u8]) -> Option<f64> {
    let (negative, digits) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, bytes),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut number, mut point) = (0_u64, None);
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => number = 10 * number + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(at),
            _ => return None,
        }
    }
    let (count, after) = match point {
        None => (digits.len(), 0),
        Some(at) => (digits.len() - 1, digits.len() - 1 - at),
    };
    if count == 0 || count > 15 {
        return None;
    }
    let value = if after == 0 { number as f64 } else { number as f64 / POWERS[after] };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_plain_decimals_are_taken() {
        for text in ["0", "-0", "7", "1.", ".5", "-.25", "0.1", "123456789012345", "007.50"] {
            let expected = text.parse::<f64>().unwrap();
            assert_eq!(
                decimal(text.as_bytes()).map(f64::to_bits),
                Some(expected.to_bits()),
                "{text}"
            );
        }
        for text in
            ["", "-", ".", "-.", "1e3", "+1", " 1", "1 ", "1.2.3", "1234567890123456", "nan"]
        {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn the_bits_are_those_of_the_standard_library(text in "-?[0-9]{0,9}\\.?[0-9]{0,9}") {
            if let Some(found) = decimal(text.as_bytes()) {
                prop_assert_eq!(found.to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }
    }
}
