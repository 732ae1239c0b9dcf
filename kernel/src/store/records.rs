//! Names, each with a number, in records of 32 bytes: half a cache line, so that one miss brings all of a record.
//!
//! A record is a head, the name and the number. The head has the length of the name, and a bit that says whether the
//! number changed. A name that is too long is kept elsewhere (`LongNames`), and the record has a reference to it.

use super::memory::{Memory, MAPPED_FROM};

const SIZE: usize = 32;
const REGION_BITS: u32 = 20;
/// The number of records that are allocated together.
const REGION: usize = 1 << REGION_BITS;
const CHANGED: u8 = 0x80;
const LENGTH: u8 = 0x1f;
const LONG: u8 = 0x1f; // in place of a length, so no name of this length is in a record
const FIRST: usize = 8; // records of the first, small allocation: there may be many stores with few names

pub struct Records {
    width: usize,
    mask: u128,
    len: usize,
    regions: Vec<Memory>,
    long: LongNames,
}

impl Records {
    /// Records whose numbers have `width` bytes, 16 at most.
    pub fn new(width: usize) -> Self {
        let mask = u128::MAX.checked_shr(128 - 8 * width as u32).unwrap_or(0);
        Records { width, mask, len: 0, regions: vec![], long: LongNames::default() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn at(&self, index: u32) -> &[u8; SIZE] {
        let begin = (index as usize & (REGION - 1)) * SIZE;
        self.regions[(index >> REGION_BITS) as usize][begin..begin + SIZE].try_into().expect("that many bytes")
    }

    #[inline(always)]
    fn at_mut(&mut self, index: u32) -> &mut [u8; SIZE] {
        let begin = (index as usize & (REGION - 1)) * SIZE;
        let region = &mut self.regions[(index >> REGION_BITS) as usize];
        (&mut region[begin..begin + SIZE]).try_into().expect("that many bytes")
    }

    #[inline(always)]
    pub fn head(&self, index: u32) -> u8 {
        self.at(index)[0]
    }

    #[inline(always)]
    pub fn name(&self, index: u32) -> &[u8] {
        let record = self.at(index);
        match record[0] & LENGTH {
            LONG => self.long.name(&record[1..]),
            length => &record[1..1 + usize::from(length)],
        }
    }

    #[inline(always)]
    pub fn number(&self, index: u32) -> u128 {
        number_of(self.at(index)) & self.mask
    }

    /// Set a number; returns false and changes nothing if it is too large for its width.
    #[inline(always)]
    pub fn set(&mut self, index: u32, number: u128) -> bool {
        if number > self.mask {
            return false;
        }
        let mask = self.mask;
        let record = self.at_mut(index);
        let whole = number_of(record) & !mask | number;
        record[SIZE - 16..].copy_from_slice(&whole.to_be_bytes());
        true
    }

    /// Note that a number changed; returns whether that was not noted yet.
    #[inline(always)]
    pub fn mark(&mut self, index: u32) -> bool {
        let head = &mut self.at_mut(index)[0];
        let is_new = *head & CHANGED == 0;
        *head |= CHANGED;
        is_new
    }

    pub fn unmark(&mut self, index: u32) {
        self.at_mut(index)[0] &= !CHANGED;
    }

    /// Add a name with the number 0; returns its index. There must be fewer than 2**32 - 1 names.
    pub fn push(&mut self, name: &[u8]) -> u32 {
        let index = u32::try_from(self.len).expect("room was asked for");
        self.reserve();
        self.len += 1;
        let is_long = name.len() > SIZE - 1 - self.width || name.len() >= usize::from(LONG);
        let reference = is_long.then(|| self.long.push(name));
        let record = self.at_mut(index);
        record.fill(0);
        match reference {
            None => {
                record[0] = name.len() as u8;
                record[1..1 + name.len()].copy_from_slice(name);
            }
            Some(reference) => {
                record[0] = LONG;
                record[1..1 + reference.len()].copy_from_slice(&reference);
            }
        }
        index
    }

    /// Make room for one more record. Only the first region grows, and is copied, until it is large enough to be mapped.
    fn reserve(&mut self) {
        let (region, within) = (self.len / REGION, self.len % REGION);
        let now = self.regions.get(region).map_or(0, |memory| memory.len() / SIZE);
        if within < now {
            return;
        }
        let wanted = if region > 0 { REGION } else { (2 * now).max(FIRST) };
        let wanted = if wanted * SIZE >= MAPPED_FROM { REGION } else { wanted };
        let mut memory = Memory::zeroed(wanted * SIZE);
        if now > 0 {
            memory[..now * SIZE].copy_from_slice(&self.regions[region]);
            self.regions[region] = memory;
        } else {
            self.regions.push(memory);
        }
    }
}

#[inline(always)]
fn number_of(record: &[u8; SIZE]) -> u128 {
    u128::from_be_bytes(record[SIZE - 16..].try_into().expect("16 bytes"))
}

const CHUNK_BITS: u32 = 20;
const CHUNK: usize = 1 << CHUNK_BITS;
const REFERENCE: usize = 12;

/// Names that are too long for a record, one after the other in chunks. A full chunk is never copied.
#[derive(Default)]
struct LongNames {
    chunks: Vec<Vec<u8>>,
}

impl LongNames {
    fn push(&mut self, name: &[u8]) -> [u8; REFERENCE] {
        if self.chunks.last().is_none_or(|chunk| chunk.len() + name.len() > CHUNK) {
            self.chunks.push(vec![]);
        }
        let number = self.chunks.len() as u64 - 1;
        let chunk = self.chunks.last_mut().expect("there is one");
        let begin = number << CHUNK_BITS | chunk.len() as u64;
        chunk.extend_from_slice(name);
        let length = u32::try_from(name.len()).expect("keys of Kafka are shorter than 4 GB");
        let mut reference = [0; REFERENCE];
        reference[..8].copy_from_slice(&begin.to_le_bytes());
        reference[8..].copy_from_slice(&length.to_le_bytes());
        reference
    }

    #[inline(always)]
    fn name(&self, reference: &[u8]) -> &[u8] {
        let begin = u64::from_le_bytes(reference[..8].try_into().expect("eight bytes"));
        let length = u32::from_le_bytes(reference[8..REFERENCE].try_into().expect("four bytes")) as usize;
        let within = begin as usize & (CHUNK - 1);
        &self.chunks[(begin >> CHUNK_BITS) as usize][within..within + length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> impl Iterator<Item = Vec<u8>> {
        (0..if cfg!(miri) { 2_000 } else { 200_000_usize }).map(|n| format!("{n}{}", "x".repeat(n % 41)).into_bytes())
    }

    #[test]
    fn names_of_any_length_keep_their_numbers() {
        for width in [0, 1, 4, 8, 16] {
            let mut records = Records::new(width);
            let held = |number| if width == 0 { 0 } else { number as u128 & 0xff };
            for (number, name) in names().enumerate() {
                let index = records.push(&name);
                assert!(records.set(index, held(number)));
                assert!(records.mark(index) && !records.mark(index));
            }
            for (number, name) in names().enumerate() {
                assert_eq!(records.name(number as u32), name);
                assert_eq!(records.number(number as u32), held(number));
            }
        }
    }

    #[test]
    fn no_number_is_cut_to_its_width() {
        let mut records = Records::new(2);
        let index = records.push(b"a");
        assert!(records.set(index, 0xffff));
        assert!(!records.set(index, 0x1_0000));
        assert_eq!((records.number(index), records.name(index)), (0xffff, &b"a"[..]));
        let mut whole = Records::new(16);
        let index = whole.push(b"a");
        assert!(whole.set(index, u128::MAX));
        assert_eq!(whole.number(index), u128::MAX);
    }
}
