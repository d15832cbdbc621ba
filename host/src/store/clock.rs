//! Dates without a calendar crate: session ids, and time stamps in recordings.

/// Days since 1970-01-01 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a number of days since 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Whole seconds of a time stamp, within what a calendar can show.
fn whole(seconds: f64) -> i64 {
    const LIMIT: f64 = 253_402_300_799.0; // 9999-12-31T23:59:59
    #[expect(
        clippy::cast_possible_truncation,
        reason = "clamped to a calendar's range just before"
    )]
    let whole = seconds.clamp(0.0, LIMIT) as i64;
    if seconds.is_nan() { 0 } else { whole }
}

/// `20260131_235959`, in UTC.
pub(crate) fn compact(seconds: f64) -> String {
    let seconds = whole(seconds);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    format!(
        "{year:04}{month:02}{day:02}_{:02}{:02}{:02}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// `2026-01-31 23:59`, in UTC.
pub fn display(seconds: f64) -> String {
    let seconds = whole(seconds);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        of_day / 3600,
        of_day / 60 % 60
    )
}

/// Seconds since 1970 of `2025-11-20T23:33:01.550Z` and its relatives; `None` for anything else.
pub(crate) fn parse_iso(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    if bytes.len() < 19
        || !text.is_ascii()
        || bytes[4] != b'-'
        || bytes[7] != b'-'
        || !matches!(bytes[10], b'T' | b' ')
    {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (month, day) = (number(5, 7)?, number(8, 10)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let whole = days(number(0, 4)?, month, day) * 86_400
        + number(11, 13)? * 3600
        + number(14, 16)? * 60
        + number(17, 19)?;
    let rest = &text[19..];
    let fraction_end = rest
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let fraction = if rest.starts_with('.') {
        rest[..fraction_end].parse::<f64>().ok()?
    } else {
        0.0
    };
    let offset = match &rest[fraction_end..] {
        "" | "Z" | "z" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
            let value = digits.get(..4)?.parse::<i64>().ok()?;
            sign * (value / 100 * 3600 + value % 100 * 60)
        }
    };
    // Exact: a calendar's seconds are far below 2^53.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a calendar's seconds are far below 2^53"
    )]
    let seconds = (whole - offset) as f64;
    Some(seconds + fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        assert_eq!(compact(0.0), "19700101_000000");
        assert_eq!(compact(951_782_400.0), "20000229_000000");
        assert_eq!(parse_iso("2000-02-29T00:00:00Z"), Some(951_782_400.0));
        assert_eq!(
            parse_iso("2025-11-20T23:33:01.550Z"),
            Some(1_763_681_581.55)
        );
        assert_eq!(parse_iso("1970-01-01T01:00:00+01:00"), Some(0.0));
        assert_eq!(parse_iso("yesterday at about noon"), None);
        assert_eq!(compact(f64::NAN), "19700101_000000");
    }
}
