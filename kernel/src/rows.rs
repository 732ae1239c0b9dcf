//! Rows that were written as JSON, looked through without making objects of them: whose they are, and how many samples.
//!
//! Taken is only what `messages.rs` and `orjson` write of rows with a single total, byte for byte. So the bytes between
//! the brackets of a list are those that the twin would write of the same rows again.

use std::ops::Range;

use crate::json::Scan;

/// So many digits fit into 64 bits, whatever they are.
const MOST_DIGITS: usize = 18;

/// The rows of one key.
#[derive(Debug, PartialEq)]
pub struct Run {
    pub key: Range<usize>,  // with its quotes
    pub rows: Range<usize>, // without the brackets of their list
    pub samples: u64,
    pub earliest: i64,
}

/// The runs of an object of rows by key; `None` if anything in it is written in another way.
pub fn runs(raw: &[u8]) -> Option<Vec<Run>> {
    let mut scan = Scan { raw, at: 0 };
    let mut found = vec![];
    scan.eat(b'{')?;
    if raw.get(1..) == Some(b"}") {
        return Some(found);
    }
    loop {
        let begin = scan.at;
        text(&mut scan)?;
        let key = begin..scan.at;
        scan.eat(b':')?;
        scan.eat(b'[')?;
        found.push(run(&mut scan, key)?);
        match scan.next()? {
            b',' => {}
            b'}' => return (scan.at == raw.len()).then_some(found),
            _ => return None,
        }
    }
}

/// The rows of a key behind their opening bracket, and the closing one.
fn run(scan: &mut Scan, key: Range<usize>) -> Option<Run> {
    let (begin, mut samples, mut earliest) = (scan.at, 0_u64, i64::MAX);
    loop {
        let (effective, more) = row(scan)?;
        samples = samples.checked_add(more)?;
        earliest = earliest.min(effective);
        match scan.next()? {
            b',' => {}
            b']' => return Some(Run { key, rows: begin..scan.at - 1, samples, earliest }),
            _ => return None,
        }
    }
}

/// Time and samples of a row.
#[inline(always)]
fn row(scan: &mut Scan) -> Option<(i64, u64)> {
    scan.eat(b'[')?;
    let effective = number(scan)?;
    scan.eat(b',')?;
    pseudonym(scan)?;
    for _ in 0..2 {
        scan.eat(b',')?;
        number(scan)?;
    }
    scan.eat(b',')?;
    let samples = number(scan)?;
    scan.eat(b',')?;
    number(scan)?;
    scan.eat(b']')?;
    Some((effective, u64::try_from(samples).ok()?))
}

/// A whole number as it is written in one way only.
#[inline(always)]
fn number(scan: &mut Scan) -> Option<i64> {
    let is_negative = scan.peek()? == b'-';
    scan.at += usize::from(is_negative);
    let (begin, mut number) = (scan.at, 0_i64);
    while let Some(digit @ b'0'..=b'9') = scan.peek() {
        if scan.at - begin == MOST_DIGITS {
            return None;
        }
        number = 10 * number + i64::from(digit - b'0');
        scan.at += 1;
    }
    let has_zero = scan.raw.get(begin) == Some(&b'0') && (is_negative || scan.at - begin > 1);
    (scan.at > begin && !has_zero).then_some(if is_negative { -number } else { number })
}

/// A text of hexadecimal digits, or of none.
#[inline(always)]
fn pseudonym(scan: &mut Scan) -> Option<()> {
    scan.eat(b'"')?;
    while let Some(b'0'..=b'9' | b'a'..=b'f') = scan.peek() {
        scan.at += 1;
    }
    scan.eat(b'"')
}

/// A text with its quotes, whatever is in it.
fn text(scan: &mut Scan) -> Option<()> {
    scan.eat(b'"')?;
    loop {
        match scan.next()? {
            b'"' => return Some(()),
            b'\\' => scan.at += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_their_bytes_samples_and_earliest_time() {
        let raw = br#"{"m/1|a\"b":[[5,"f00d",1,0,1,7],[-3,"",2,1,2,-9]],"m/1|":[[0,"a",1,0,1,0]]}"#;
        let found = runs(raw).unwrap();
        let said: Vec<_> = found.iter().map(|run| (&raw[run.key.clone()], run.samples, run.earliest)).collect();
        assert_eq!(said, [(&br#""m/1|a\"b""#[..], 3, -3), (&br#""m/1|""#[..], 1, 0)]);
        assert_eq!(&raw[found[0].rows.clone()], br#"[5,"f00d",1,0,1,7],[-3,"",2,1,2,-9]"#);
        assert_eq!(runs(b"{}"), Some(vec![]));
    }

    #[test]
    fn what_is_written_in_another_way_is_not_taken() {
        for rows in [
            "",
            "[]",
            "[5,\"f\",1,0,1]",
            "[5,\"f\",1,0,1,7,8]",
            "[5, \"f\",1,0,1,7]",
            "[05,\"f\",1,0,1,7]",
            "[-0,\"f\",1,0,1,7]",
            "[5,\"F\",1,0,1,7]",
            "[5,\"f\",1,0,-1,7]",
            "[5,\"f\",1,0,1,7.0]",
            "[5,\"f\",1,0,1,-]",
            "[5,\"f\",1,0,1,[7]]",
            "[5,\"f\",1,0,1,1234567890123456789]",
            "[5,\"f\",1,0,1,7],",
        ] {
            assert_eq!(runs(format!("{{\"k\":[{rows}]}}").as_bytes()), None, "{rows}");
        }
        let whole = br#"{"k":[[5,"f",1,0,1,7]]}"#;
        assert!(runs(whole).is_some());
        for end in 0..whole.len() {
            assert_eq!(runs(&whole[..end]), None);
        }
        assert_eq!(runs(br#"{"k":[[5,"f",1,0,1,7]]} "#), None);
    }
}
