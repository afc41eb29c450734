//! Numbers as people read them: significant digits, percentages, durations, counts.
//!
//! An ε is rounded *up* at its last printed digit: a report may overstate a privacy loss by a
//! rounding, never understate it. Digits are grouped by narrow no-break spaces (U+202F), negative
//! numbers carry a true minus sign (U+2212), and what is not a number reads "n/a".

use std::time::Duration;

const THIN_SPACE: char = '\u{202f}';

/// `x` with `digits` significant digits; very large and very small values as `1.23×10⁻⁵`.
///
/// ```
/// use geodp_report::format::significant;
/// assert_eq!(significant(0.123456, 3), "0.123");
/// assert_eq!(significant(1.23456e-5, 3), "1.23×10⁻⁵");
/// assert_eq!(significant(f64::NAN, 3), "n/a");
/// ```
pub fn significant(x: f64, digits: usize) -> String {
    round_to(x, digits, false)
}

/// An ε (or any privacy loss) with three significant digits, rounded up.
///
/// ```
/// use geodp_report::format::epsilon;
/// assert_eq!(epsilon(2.9311), "2.94");
/// assert_eq!(epsilon(3.0), "3.00");
/// assert_eq!(epsilon(f64::INFINITY), "∞");
/// ```
pub fn epsilon(x: f64) -> String {
    round_to(x, 3, true)
}

/// A fraction as a percentage with one decimal: `0.981` is `98.1 %`.
pub fn percent(fraction: f64) -> String {
    if !fraction.is_finite() {
        return non_finite(fraction);
    }
    format!("{}{THIN_SPACE}%", with_minus(format!("{:.1}", fraction * 100.0)))
}

/// A count with its digits grouped: `60000` is `60 000`.
pub fn count(n: u64) -> String {
    group(&n.to_string())
}

/// A rate that fits a headline: `69 439 / s`, `1.36 M / s`.
pub fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 999_500.0 => format!("{}{THIN_SPACE}/{THIN_SPACE}s", count(rate as u64)),
        rate => format!("{}{THIN_SPACE}M{THIN_SPACE}/{THIN_SPACE}s", significant(rate / 1e6, 3)),
    }
}

/// A time span in the two largest units that matter: `350 ms`, `12.3 s`, `3 min 05 s`, `2 h 07 min`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 0.9995 => format!("{:.0} ms", s * 1e3),
        s if s < 59.95 => format!("{s:.1} s"),
        _ if whole < 3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ if whole < 86_400 => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {:02} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// An integer exponent in superscript characters, for `10⁻⁵` in running text.
pub(crate) fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    exponent
        .to_string()
        .chars()
        .map(|c| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]))
        .collect()
}

/// Replaces an ASCII hyphen at the front by a minus sign.
pub(crate) fn with_minus(number: String) -> String {
    match number.strip_prefix('-') {
        // "-0.0" is zero.
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => number,
    }
}

/// Groups the integer digits of a plain decimal number by threes, from five digits on.
pub(crate) fn group(number: &str) -> String {
    let (integer, fraction) =
        number.find('.').map_or((number, ""), |dot| (&number[..dot], &number[dot..]));
    let digits = integer.chars().filter(char::is_ascii_digit).count();
    if digits < 5 {
        return number.to_owned();
    }
    let mut out = String::new();
    let mut left = digits;
    for c in integer.chars() {
        out.push(c);
        if c.is_ascii_digit() {
            left -= 1;
            if left > 0 && left % 3 == 0 {
                out.push(THIN_SPACE);
            }
        }
    }
    out + fraction
}

fn non_finite(x: f64) -> String {
    if x.is_nan() {
        "n/a"
    } else if x > 0.0 {
        "∞"
    } else {
        "−∞"
    }
    .to_owned()
}

fn round_to(x: f64, digits: usize, up: bool) -> String {
    if !x.is_finite() {
        return non_finite(x);
    }
    if x == 0.0 {
        return "0".to_owned();
    }
    let digits = digits.clamp(1, 15);
    // The formatter rounds decimally and exactly; its own output says mantissa and exponent.
    let split = |value: f64| {
        let text = format!("{value:.*e}", digits - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        (mantissa.to_owned(), exponent.parse::<i32>().unwrap_or(0), text.clone())
    };
    let (mut mantissa, mut exponent, text) = split(x);
    if up && text.parse::<f64>().is_ok_and(|rounded| rounded < x) {
        // Half a unit of the last digit above the rounded-down value rounds to the next one.
        let unit = 10f64.powi(exponent - digits as i32 + 1);
        (mantissa, exponent, _) = split(text.parse::<f64>().unwrap_or(x) + unit);
    }
    if (-4..6).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        let value = format!("{mantissa}e{exponent}").parse::<f64>().unwrap_or(x);
        group(&with_minus(format!("{value:.decimals$}")))
    } else {
        format!("{}×10{}", with_minus(mantissa), superscript(exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(significant(123_456.0, 3), "123\u{202f}000");
        assert_eq!(significant(-0.5, 2), "−0.50");
        assert_eq!(significant(9.999, 3), "10.0");
        assert_eq!(significant(6.02e23, 2), "6.0×10²³");
        assert_eq!(epsilon(0.0), "0");
        assert_eq!(epsilon(9.991), "10.0");
        assert_eq!(epsilon(1.0000001), "1.01");
        assert_eq!(percent(0.98104), "98.1\u{202f}%");
        assert_eq!(percent(-0.0001), "0.0\u{202f}%");
        assert_eq!(count(999), "999");
        assert_eq!(count(1024), "1024");
        assert_eq!(count(60_000), "60\u{202f}000");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(rate(69_439.7), "69\u{202f}439\u{202f}/\u{202f}s");
        assert_eq!(rate(1_363_485.0), "1.36\u{202f}M\u{202f}/\u{202f}s");
        assert_eq!(rate(999_999.0), "1.00\u{202f}M\u{202f}/\u{202f}s");
    }

    #[test]
    fn durations_keep_two_units() {
        let text = |ms| duration(Duration::from_millis(ms));
        assert_eq!(text(0), "0 ms");
        assert_eq!(text(350), "350 ms");
        assert_eq!(text(12_340), "12.3 s");
        assert_eq!(text(59_970), "1 min 00 s");
        assert_eq!(text(185_000), "3 min 05 s");
        assert_eq!(text(7_620_000), "2 h 07 min");
        assert_eq!(text(273_600_000), "3 d 04 h");
    }
}
