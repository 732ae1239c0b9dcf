//! Bytes eight at a time, as a word: the byte that comes first is the lowest of the word.
//!
//! A word of marks has the high bit of each byte that is searched for. Bytes behind the first marked one may be marked
//! wrongly, because subtraction borrows from them.

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;

/// Marks of the bytes that equal `byte`.
#[inline(always)]
pub fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * u64::from(byte)), 1)
}

/// Marks of the bytes that are less than `limit`, which is 128 at most.
#[inline(always)]
pub fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGHS
}

/// The number of bytes before the first one that is marked, or in all whole words if none is.
#[inline(always)]
pub fn unmarked(raw: &[u8], marks: impl Fn(u64) -> u64) -> usize {
    let mut at = 0;
    for eight in raw.chunks_exact(8) {
        let found = marks(u64::from_le_bytes(eight.try_into().expect("eight bytes")));
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mark_is_right_whatever_stands_around_it() {
        for byte in 0..=255_u8 {
            for other in [0, 0x1f, 0x20, 0x21, 0x7f, 0x80, 0xff, byte ^ 1, byte ^ 0x80] {
                for at in 0..8 {
                    let mut raw = [other; 8];
                    raw[at] = byte;
                    for limit in [1, 0x20, 0x80] {
                        let due = raw.iter().position(|&one| one < limit).unwrap_or(8);
                        assert_eq!(unmarked(&raw, |word| below(word, limit)), due, "{raw:?}, {limit}");
                    }
                    let due = if other == byte { 0 } else { at };
                    assert_eq!(unmarked(&raw, |word| equal(word, byte)), due, "{raw:?}, {byte}");
                }
            }
        }
    }

    #[test]
    fn the_rest_that_fills_no_word_is_left() {
        for length in 0..40 {
            assert_eq!(unmarked(&[7; 40][..length], |word| equal(word, 8)), length / 8 * 8);
            assert_eq!(unmarked(&[7; 40][..length], |word| equal(word, 7)), 0);
        }
    }
}
