//! Cuts a block of a file into events, one for each line that is not blank, as `EventFile` in
//! `shoal/agents/input/event_file.py` does.

use crate::words::{equal, unmarked};

/// The events in a block of whole lines.
#[derive(Debug, PartialEq)]
pub struct Cut {
    pub places: Vec<(u32, u32)>, // begin and end of each event
    pub has_blanks: bool,
    /// The events, each followed by a newline; `None` if that is what the block itself contains.
    pub joined: Option<Vec<u8>>,
}

/// Whether Python's `bytes.strip` removes this byte.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The position of the first newline, or the length if there is none.
#[inline(always)]
fn newline_in(raw: &[u8]) -> usize {
    let begin = unmarked(raw, |word| equal(word, b'\n'));
    raw[begin..].iter().position(|&byte| byte == b'\n').map_or(raw.len(), |place| begin + place)
}

/// Cut a block at its newlines; `None` if it is longer than a `u32` can count. The last line needs no newline.
pub fn cut(raw: &[u8]) -> Option<Cut> {
    u32::try_from(raw.len()).ok()?;
    let mut cut = Cut { places: Vec::with_capacity(raw.len() / 40), has_blanks: false, joined: None };
    let (mut begin, mut as_it_is) = (0, raw.is_empty() || raw.ends_with(b"\n"));
    while begin < raw.len() {
        let newline = begin + newline_in(&raw[begin..]);
        let line = &raw[begin..newline];
        let end = begin + line.iter().rposition(|&byte| byte != b'\r').map_or(0, |at| at + 1);
        as_it_is &= end == newline;
        if raw[begin..end].iter().all(|&byte| is_blank(byte)) {
            cut.has_blanks = true;
        } else {
            cut.places.push((begin as u32, end as u32));
        }
        begin = newline + 1;
    }
    if !as_it_is || cut.has_blanks {
        let mut joined = Vec::with_capacity(raw.len() + 1);
        for &(begin, end) in &cut.places {
            joined.extend_from_slice(&raw[begin as usize..end as usize]);
            joined.push(b'\n');
        }
        cut.joined = Some(joined);
    }
    Some(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_they_do_in_python() {
        let found = cut(b"a\n\n b \r\r\n \t\r\n\rc").unwrap();
        assert_eq!(found.places, [(0, 1), (3, 6), (13, 15)]);
        assert_eq!(found.joined.as_deref(), Some(&b"a\n b \n\rc\n"[..]));
        assert!(found.has_blanks);
    }

    #[test]
    fn newlines_are_found_wherever_they_are() {
        for length in 0..40 {
            for other in [0, 9, 11, 0x0a ^ 0x80, 0xff] {
                let mut raw = vec![other; length];
                assert_eq!(newline_in(&raw), length);
                for at in (0..length).rev() {
                    raw[at] = b'\n';
                    assert_eq!(newline_in(&raw), at);
                }
            }
        }
    }

    #[test]
    fn a_block_of_events_alone_is_not_copied() {
        assert_eq!(cut(b"a\nb\n"), Some(Cut { places: vec![(0, 1), (2, 3)], has_blanks: false, joined: None }));
        assert_eq!(cut(b"a\nb").unwrap().joined.as_deref(), Some(&b"a\nb\n"[..]));
        assert_eq!(cut(b"").unwrap().joined, None);
    }
}
