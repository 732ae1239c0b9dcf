//! Lines of a file: those of the standard library, wherever the file is cut into blocks of whole lines.

use crate::lines::cut;

pub fn lines(raw: &[u8]) {
    let found = cut(raw).expect("short enough");
    let due: Vec<&[u8]> =
        raw.split(|&byte| byte == b'\n').map(without_returns).filter(|line| !is_blank(line)).collect();
    let lines = |places: &[(u32, u32)], of: &[u8]| -> Vec<Vec<u8>> {
        places.iter().map(|&(begin, end)| of[begin as usize..end as usize].to_vec()).collect()
    };
    assert_eq!(lines(&found.places, raw), due);
    let whole = raw.strip_suffix(b"\n").unwrap_or(raw);
    let all = if raw.is_empty() { 0 } else { whole.split(|&byte| byte == b'\n').count() };
    assert_eq!(found.has_blanks, due.len() < all);
    let joined: Vec<u8> = due.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    assert_eq!(found.joined.as_deref().unwrap_or(raw), joined);
    assert_eq!(found.joined.is_none(), joined == raw);
    // in two blocks the lines are the same
    if let Some(end) = raw[..raw.len() / 2].iter().rposition(|&byte| byte == b'\n') {
        let (first, second) = raw.split_at(end + 1);
        let [one, two] = [first, second].map(|block| cut(block).expect("shorter"));
        assert_eq!([lines(&one.places, first), lines(&two.places, second)].concat(), due);
    }
}

/// As Python's `rstrip(b"\r")`.
fn without_returns(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&byte| byte != b'\r').map_or(0, |at| at + 1);
    &line[..end]
}

/// Whether Python's `strip` leaves nothing.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| b" \t\n\r\x0b\x0c".contains(byte))
}
