//! Fields of a record: numbers are those of the standard library, times those of `chrono`.

use chrono::{DateTime, SecondsFormat};
use serde_json::Number;

use crate::json::Field;
use crate::numbers::{double, small_integer, LONGEST};
use crate::times::time_of;

const SECOND: i64 = 1_000_000;
const FIRST: i64 = -2_208_988_800 * SECOND; // 1900-01-01
const END: i64 = 7_258_118_400 * SECOND; // 2200-01-01

pub fn fields(raw: &[u8]) {
    number(raw);
    let is_date = raw.len() == 10;
    if let Some(time) = time_of(Field::Text(raw)) {
        let text = std::str::from_utf8(raw).expect("a time is ASCII");
        let text = if is_date { format!("{text}T00:00:00Z") } else { text.replacen(' ', "T", 1) };
        let has_zone = text.ends_with('Z') || text[11..].contains(['+', '-']);
        let text = if has_zone { text } else { format!("{text}Z") };
        assert_eq!(DateTime::parse_from_rfc3339(&text).map(|due| due.timestamp_micros()), Ok(time), "{text}");
    }
    if let Some(first) = raw.first_chunk() {
        written(FIRST + i64::from_le_bytes(*first).rem_euclid(END - FIRST));
    }
}

fn number(raw: &[u8]) {
    let Ok(text) = std::str::from_utf8(raw) else { return };
    if serde_json::from_slice::<Number>(raw).is_err() || text.trim() != text {
        return; // the reader of JSON hands over numbers alone
    }
    let due = text.parse().ok().filter(|due: &f64| due.is_finite());
    let read = due.filter(|_| raw.len() <= LONGEST);
    assert_eq!(double(raw).map(f64::to_bits), read.map(f64::to_bits), "{text}");
    let is_whole = raw.iter().all(u8::is_ascii_digit);
    let due = if is_whole && raw.len() <= 18 { text.parse().ok() } else { None };
    assert_eq!(small_integer(raw), due, "{text}");
    if let Some(time) = time_of(Field::Integer(raw)) {
        let number = i128::from(due.expect("a time is a whole number"));
        assert!([SECOND, 1000].iter().any(|&unit| number * i128::from(unit) == time.into()), "{text}");
    }
}

/// A time that is written in any of the plain forms is read.
fn written(time: i64) {
    let whole = DateTime::from_timestamp_micros(time).expect("a time of these centuries");
    for format in [SecondsFormat::Micros, SecondsFormat::AutoSi] {
        for uses_z in [true, false] {
            let text = whole.to_rfc3339_opts(format, uses_z);
            let due = Some(if text.contains('.') { time } else { time.div_euclid(SECOND) * SECOND });
            assert_eq!(time_of(Field::Text(text.as_bytes())), due, "{text}");
            assert_eq!(time_of(Field::Text(text.replacen('T', " ", 1).as_bytes())), due, "{text}");
        }
    }
    let day = time.div_euclid(86_400 * SECOND) * 86_400 * SECOND;
    let date = whole.date_naive().to_string();
    assert_eq!(time_of(Field::Text(date.as_bytes())), Some(day), "{date}");
    let seconds = time.div_euclid(SECOND);
    if seconds >= 0 {
        assert_eq!(time_of(Field::Integer(seconds.to_string().as_bytes())), Some(seconds * SECOND));
    }
}
