//! How an ε or a σ is printed: rounded *up*, so that what is read still bounds what was spent.
//!
//! Four decimals, and more for small numbers: at least two digits that are not zero always remain,
//! so that no ε > 0 reads as 0.

/// Decimals of a printed number.
const DECIMALS: i32 = 4;
/// Below 10^−this a number is printed with an exponent.
const MOST_DECIMALS: i32 = 9;

/// `value` rounded up at its last printed digit: never less than what is given.
///
/// ```
/// use geodp_account::rounded_up;
/// assert_eq!(rounded_up(1.82841), "1.8285");
/// assert_eq!(rounded_up(3.38e-5), "0.000034");
/// assert_eq!(rounded_up(f64::INFINITY), "∞");
/// ```
pub fn rounded_up(value: f64) -> String {
    rounded(value, DECIMALS, true)
}

/// `value` with at least `decimals` decimals, rounded up or down at the last.
pub(crate) fn rounded(value: f64, decimals: i32, up: bool) -> String {
    if value.is_nan() {
        return "n/a".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    if value <= 0.0 {
        return format!("{value:.0$}", decimals as usize);
    }
    let exponent = value.log10().floor() as i32;
    // Of 15 digits a double is sure; a unit of the last must be far above its own spacing.
    let places = decimals.max(1 - exponent).min((14 - exponent).max(0));
    if places > MOST_DECIMALS {
        return scientific(value, up);
    }
    let places = places as usize;
    let nearest = format!("{value:.places$}");
    let unit = 10f64.powi(-(places as i32));
    // The printed text itself is compared, not a number that was rounded on the way.
    match nearest.parse::<f64>() {
        Ok(printed) if up && printed < value => format!("{:.places$}", printed + unit),
        Ok(printed) if !up && printed > value => format!("{:.places$}", printed - unit),
        _ => nearest,
    }
}

/// Two digits and an exponent.
fn scientific(value: f64, up: bool) -> String {
    let nearest = format!("{value:.1e}");
    let Ok(printed) = nearest.parse::<f64>() else { return nearest };
    let unit = 10f64.powi(printed.log10().floor() as i32 - 1);
    if up && printed < value {
        format!("{:.1e}", printed + unit)
    } else if !up && printed > value {
        format!("{:.1e}", printed - unit)
    } else {
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_positive_number_reads_as_zero() {
        assert_eq!(rounded_up(0.0), "0.0000");
        assert_eq!(rounded_up(1e-300), "1.0e-300");
        assert_eq!(rounded_up(1.234e-7), "0.00000013");
        assert_eq!(rounded_up(0.00001), "0.000010");
        assert_eq!(rounded_up(2.0), "2.0000");
        assert_eq!(rounded_up(9.99999), "10.0000");
        assert_eq!(rounded(1.82849, 4, false), "1.8284");
        // As many digits as a double has: a millionth is its spacing here.
        assert_eq!(rounded(5_671_111_232.258_800_5, 6, false), "5671111232.25880");
    }

    proptest! {
        #[test]
        fn what_is_printed_bounds_what_was_given(mantissa in 1.0f64..10.0, power in -30i32..15) {
            let value = mantissa * 10f64.powi(power);
            let up: f64 = rounded_up(value).parse().unwrap();
            let down: f64 = rounded(value, 6, false).parse().unwrap();
            prop_assert!(up >= value && up <= value * 1.11, "{value} as {up}");
            prop_assert!(down <= value && down >= value * 0.89, "{value} as {down}");
        }
    }
}
