//! Event times in the plain forms, read as microseconds since the Unix epoch.

use crate::json::Field;
use crate::numbers::small_integer;

const SECOND: i64 = 1_000_000;
/// Smaller numbers are seconds.
const MILLISECONDS_FROM: i64 = 100_000_000_000;
/// From here on a number of 14 digits may be a calendar date (20240101120000), which the twin refuses.
const DATES_FROM: i64 = 19_000_000_000_000;

/// The time that a field tells; `None` leaves the record to the twin.
#[inline(always)]
pub fn time_of(field: Field) -> Option<i64> {
    match field {
        Field::Integer(text) => match small_integer(text)? {
            number if number < MILLISECONDS_FROM => Some(number * SECOND),
            number if number < DATES_FROM => Some(number * 1000),
            _ => None,
        },
        Field::Text(text) => of_text(text),
        _ => None,
    }
}

/// Either a date, `YYYY-MM-DD`, or a date and a time of day: `T` or a blank after the date, then `HH:MM:SS`, perhaps
/// with decimals, and `Z`, `±HH:MM` or nothing, which means UTC.
#[inline(always)]
fn of_text(text: &[u8]) -> Option<i64> {
    let date = text.get(..10)?;
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    let (year, month, day) = (number(&date[..4])?, number(&date[5..7])?, number(&date[8..])?);
    // Years far away are left to the twin, and so is refusing days that do not exist.
    if !(1900..2200).contains(&year) || !(1..=12).contains(&month) || day < 1 || day > days_of(year, month) {
        return None;
    }
    let midnight = day_number(year, month, day) * 86_400 * SECOND;
    match text.get(10) {
        None => Some(midnight),
        Some(b'T' | b' ') => Some(midnight + of_day(&text[11..])?),
        Some(_) => None,
    }
}

#[inline(always)]
fn of_day(text: &[u8]) -> Option<i64> {
    let clock = text.get(..8)?;
    if clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&clock[..2])?, number(&clock[3..5])?, number(&clock[6..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (decimals, zone) = decimals(&text[8..])?;
    Some(((hour * 60 + minute) * 60 + second) * SECOND + decimals - offset(zone)? * 60 * SECOND)
}

/// The decimals of a second as microseconds, 0 if there are none, and the text that follows them.
#[inline(always)]
fn decimals(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.', after @ ..] = text else { return Some((0, text)) };
    let length = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=6).contains(&length) {
        return None;
    }
    let scale = 10_i64.pow(6 - length as u32);
    Some((number(&after[..length])? * scale, &after[length..]))
}

/// By how many minutes a time zone is ahead of UTC.
#[inline(always)]
fn offset(zone: &[u8]) -> Option<i64> {
    match zone {
        [] | [b'Z'] => Some(0),
        [sign @ (b'+' | b'-'), a, b, b':', c, d] => {
            let (hours, minutes) = (number(&[*a, *b])?, number(&[*c, *d])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let ahead = hours * 60 + minutes;
            Some(if *sign == b'+' { ahead } else { -ahead })
        }
        _ => None,
    }
}

#[inline(always)]
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)),
        _ => 31,
    }
}

/// Days from the epoch to a date in the Gregorian calendar.
///
/// The year is taken to begin in March, so that a leap day is its last, and an era has 400 years. 719,468 days lie
/// between 1 March of the year 0 and the epoch.
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, expected) in [
            ("1970-01-02", 86_400 * SECOND),
            ("1970-01-01T00:00:01.5Z", 1_500_000),
            ("1970-01-01 01:00:00+01:00", 0),
            ("2000-02-29T12:00:00", 951_825_600 * SECOND),
            ("1969-12-31T23:59:59.999999Z", -1),
        ] {
            assert_eq!(time_of(Field::Text(text.as_bytes())), Some(expected), "{text}");
        }
        assert_eq!(time_of(Field::Integer(b"1704067200")), time_of(Field::Integer(b"1704067200000")));
    }

    #[test]
    fn what_is_not_surely_a_time_is_left_to_the_twin() {
        for text in [
            "",
            "1970",
            "19700101",
            "1970-13-01",
            "1970-02-30",
            "1970-01-01x",
            "1970-01-01T24:00:00",
            "1970-01-01T00:00",
            "1970-01-01T00:00:00z",
            "1970-01-01T00:00:00.1234567Z",
            "1970-01-01T00:00:00+0100",
            "0001-01-01",
        ] {
            assert_eq!(time_of(Field::Text(text.as_bytes())), None, "{text}");
        }
        assert_eq!(time_of(Field::Integer(b"20240101120000")), None);
        assert_eq!(time_of(Field::Integer(b"-1")), None);
    }
}
