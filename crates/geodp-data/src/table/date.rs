//! Dates and times of day, as ISO 8601 writes them, as days since 1970-01-01.
//!
//! `2024-02-29`, `2024-02-29 13:45`, `2024-02-29T13:45:10.25Z`. Times are taken as they stand: a zone
//! other than `Z` or `+00:00` is refused, because days of different zones are not comparable.

/// A moment: whole days since 1970-01-01, and nanoseconds of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) day: i64,
    pub(crate) nanos: i64,
}

const NANOS_A_DAY: i64 = 86_400_000_000_000;

impl Moment {
    /// A moment so many ticks after 1970, with `per_day` ticks a day (a divisor of 8.64e13).
    pub(crate) fn from_ticks(ticks: i64, per_day: i64) -> Self {
        let nanos = ticks.rem_euclid(per_day) * (NANOS_A_DAY / per_day);
        Moment { day: ticks.div_euclid(per_day), nanos }
    }

    /// Days since 1970 as a number.
    pub(crate) fn days(self) -> f64 {
        self.day as f64 + self.nanos as f64 / NANOS_A_DAY as f64
    }

    /// As ISO 8601 writes its day.
    pub(crate) fn date(self) -> String {
        let (year, month, day) = civil(self.day);
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// Reads a date, or a date and a time.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, time) = match text.find(['T', 't', ' ']) {
            Some(at) => (&text[..at], Some(text[at + 1..].trim_start())),
            None => (text, None),
        };
        let mut parts = date.split('-');
        let mut part = |digits| digits_of(parts.next()?, digits);
        let (year, month, day) = (part(4)?, part(2)?, part(2)?);
        if parts.next().is_some() || !(1..=12).contains(&month) {
            return None;
        }
        let number = days_from_civil(year, month, day);
        if civil(number) != (year, month, day) {
            return None;
        }
        let nanos = time.map_or(Some(0), nanos_of_day)?;
        Some(Moment { day: number, nanos })
    }
}

fn digits_of(text: &str, digits: usize) -> Option<i64> {
    let plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

fn nanos_of_day(time: &str) -> Option<i64> {
    let utc = ["Z", "z", "+00:00", "+0000"].into_iter().find_map(|zone| time.strip_suffix(zone));
    let time = utc.unwrap_or(time);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.split(':');
    let (hour, minute) = (digits_of(parts.next()?, 2)?, digits_of(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |part| digits_of(part, 2))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let nanos = match fraction {
        "" => 0,
        _ => digits_of(fraction, fraction.len())? * 10i64.pow(9 - fraction.len() as u32),
    };
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanos)
}

/// Days since 1970-01-01 of a date of the Gregorian calendar
/// ([Hinnant](https://howardhinnant.github.io/date_algorithms.html)): years start in March, so that the
/// leap day is the last one.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let cases = [("1970-01-01", 0), ("1969-12-31", -1), ("2000-03-01", 11_017)];
        for (text, day) in
            cases.into_iter().chain([("2024-02-29", 19_782), ("0001-01-01", -719_162)])
        {
            assert_eq!(Moment::parse(text).unwrap(), Moment { day, nanos: 0 }, "{text}");
        }
        // Every day of eight centuries follows the day before it.
        for day in -146_097..146_097 {
            let text = Moment { day, nanos: 0 }.date();
            assert_eq!(Moment::parse(&text).unwrap().day, day, "{text}");
        }
    }

    #[test]
    fn times_are_parts_of_a_day() {
        for text in ["1970-01-02 12:00", "1970-01-02T12:00:00.000+00:00", "1970-01-02 12:00:00"] {
            assert_eq!(Moment::parse(text).unwrap().days(), 1.5, "{text}");
        }
        assert_eq!(
            Moment::from_ticks(-1, 86_400_000),
            Moment { day: -1, nanos: NANOS_A_DAY - 1_000_000 }
        );
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2024",
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-00-10",
            "24-01-01",
            "2024-1-1",
            "01.02.2024",
            "2024-01-01 24:00",
            "2024-01-01 12",
            "2024-01-01T12:00+02:00",
            "2024-01-01 12:00:00.1234567890",
            "2024-01-01-01",
            "２０２４-01-01",
        ] {
            assert!(Moment::parse(text).is_none(), "{text}");
        }
    }
}
