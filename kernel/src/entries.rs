//! Reads and writes the lengths and numbers of the changelog's entries.
//!
//! The twin is `shoal/mechanisms/stores/packed.py`.

pub fn write_length(out: &mut Vec<u8>, mut size: usize) {
    while size > 127 {
        out.push((size & 127) as u8 | 128);
        size >>= 7;
    }
    out.push(size as u8);
}

/// The length at this position, and the position after it.
#[inline(always)]
pub fn read_length(entries: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let (mut size, mut shift) = (0, 0);
    while shift < 35 {
        let byte = *entries.get(at)?;
        at += 1;
        size |= usize::from(byte & 127) << shift;
        if byte < 128 {
            return Some((size, at));
        }
        shift += 7;
    }
    None
}

const LOW_BITS: usize = 32; // bits of a number that are in its first part

/// The most bytes that each of the two parts of a number can take, if its kind has `width` bytes.
pub fn most_bytes(width: usize) -> (usize, usize) {
    let low = (8 * width).min(LOW_BITS);
    ((low + 1).div_ceil(7), (8 * width - low).div_ceil(7))
}

fn write_bits(out: &mut Vec<u8>, mut bits: u128) {
    while bits > 127 {
        out.push((bits & 127) as u8 | 128);
        bits >>= 7;
    }
    out.push(bits as u8);
}

pub fn write_number(out: &mut Vec<u8>, number: u128) {
    let (high, low) = (number >> LOW_BITS, u64::from(number as u32) << 1);
    write_bits(out, u128::from(low | u64::from(high > 0)));
    if high > 0 {
        write_bits(out, high);
    }
}

const SHORT: usize = 9; // a word holds the bits of this many bytes

/// Bits in at most `most` bytes, which are 18 or fewer, and the position after them.
#[inline(always)]
fn read_bits(entries: &[u8], at: usize, most: usize) -> Option<(u128, usize)> {
    let mut low = 0_u64; // nearly all numbers are short, and shifts of a word are cheaper
    for (count, &byte) in entries.get(at..)?.iter().take(most.min(SHORT)).enumerate() {
        low |= u64::from(byte & 127) << (7 * count);
        if byte < 128 {
            return Some((u128::from(low), at + count + 1));
        }
    }
    let mut bits = u128::from(low);
    for (count, &byte) in entries.get(at..)?.iter().take(most).enumerate().skip(SHORT) {
        bits |= u128::from(byte & 127) << (7 * count);
        if byte < 128 {
            return Some((bits, at + count + 1));
        }
    }
    None
}

/// The number at this position, and the position after it.
#[inline(always)]
pub fn read_number(entries: &[u8], at: usize, width: usize, most: (usize, usize)) -> Option<(u128, usize)> {
    let (twice, mut at) = read_bits(entries, at, most.0)?;
    let mut number = twice >> 1;
    if number >> (8 * width).min(LOW_BITS) > 0 {
        return None;
    }
    if twice & 1 == 1 {
        let (high, end) = read_bits(entries, at, most.1)?; // `most.1` is 0 for kinds that have no high bits
        if high >> (8 * width - LOW_BITS) > 0 {
            return None;
        }
        (number, at) = (number | high << LOW_BITS, end);
    }
    Some((number, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for width in 1..=16 {
            let most = most_bytes(width);
            for bits in 0..=8 * width as u32 {
                let above = 1_u128.checked_shl(bits).unwrap_or(0).wrapping_sub(1); // the largest of so many bits
                for number in [above, above >> 1, above & !1, above & 0x5555 << 24] {
                    let mut out = vec![];
                    write_number(&mut out, number);
                    assert!(out.len() <= most.0 + most.1);
                    assert_eq!(read_number(&out, 0, width, most), Some((number, out.len())));
                    assert_eq!(read_number(&out[..out.len() - 1], 0, width, most), None);
                }
            }
            let mut largest = vec![];
            write_number(&mut largest, u128::MAX >> (128 - 8 * width));
            assert_eq!(largest.len(), most.0 + most.1);
        }
    }

    #[test]
    fn a_number_that_is_too_large_is_refused() {
        let refused = |entries: &[u8], width| read_number(entries, 0, width, most_bytes(width)).is_none();
        assert!(refused(&[0x80, 0x04], 1)); // 256 in one byte
        assert!(refused(&[0x01, 0x01], 4)); // what is above 32 bits, of a kind that has none
        assert!(refused(&[0x80, 0x80, 0x80, 0x80, 0x20], 8)); // 33 bits in the first part
        assert!(refused(&[0x01, 0x80, 0x80, 0x80, 0x80, 0x10], 8)); // 33 above them
        assert!(!refused(&[0x01, 0xff, 0xff, 0xff, 0xff, 0x0f], 8));
        assert!(refused(&[[1].as_slice(), &[0x80; 13], &[0x20]].concat(), 16)); // 97 above them
    }
}
