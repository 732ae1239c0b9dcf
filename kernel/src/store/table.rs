//! A hash table with linear probing that finds a name's index by its hash, in nearly all cases with one read of eight
//! bytes.
//!
//! A slot has the upper half of the hash, which makes it almost certain that its name is the right one, and the index.
//! The position of a slot grows with its hash. So when the table grows, the old slots are read and the new ones written
//! from one end to the other, and no name is looked at. It grows by a third, so that it is never mostly empty.

use super::memory::Memory;

const SLOT: usize = 8;
const LEAST: usize = 16; // slots

#[derive(Default)]
pub struct Table {
    slots: Memory, // half a hash and index + 1 in each; 0: empty
    size: usize,   // number of slots
    used: usize,
}

impl Table {
    #[inline(always)]
    fn slot(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.slots[at * SLOT..at * SLOT + SLOT].try_into().expect("eight bytes"))
    }

    fn set(&mut self, at: usize, slot: u64) {
        self.slots[at * SLOT..at * SLOT + SLOT].copy_from_slice(&slot.to_le_bytes());
    }

    /// The position at which the search for a hash begins.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        ((u128::from(hash >> 32) * self.size as u128) >> 32) as usize
    }

    /// The content of the slot at which the search for a hash begins; 0 if there are no slots.
    #[inline(always)]
    pub fn first(&self, hash: u64) -> u64 {
        if self.size == 0 {
            0
        } else {
            self.slot(self.home(hash))
        }
    }

    #[inline(always)]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.size {
            0
        } else {
            at + 1
        }
    }

    /// The number that was added under this hash and for which `is_meant` holds.
    #[inline(always)]
    pub fn find(&self, hash: u64, is_meant: impl FnMut(u32) -> bool) -> Option<u32> {
        self.seek(hash, is_meant).ok()
    }

    /// The same, or where it would be: a slot that is free, unless there is no slot at all.
    #[inline(always)]
    pub fn seek(&self, hash: u64, mut is_meant: impl FnMut(u32) -> bool) -> Result<u32, usize> {
        let mut at = self.home(hash);
        if self.size == 0 {
            return Err(at);
        }
        loop {
            let slot = self.slot(at);
            if slot == 0 {
                return Err(at);
            }
            if slot >> 32 == hash >> 32 {
                let number = slot as u32 - 1;
                if is_meant(number) {
                    return Ok(number);
                }
            }
            at = self.next(at);
        }
    }

    /// Add a number, smaller than 2**32 - 1, under a hash, at the free slot that `seek` found for it.
    #[inline(always)]
    pub fn insert(&mut self, free: usize, hash: u64, number: u32) {
        let slot = hash >> 32 << 32 | u64::from(number + 1);
        self.used += 1;
        if self.used * 5 > self.size * 4 {
            self.grow();
            self.settle(slot);
        } else {
            self.set(free, slot);
        }
    }

    fn settle(&mut self, slot: u64) {
        let mut at = self.home(slot);
        while self.slot(at) != 0 {
            at = self.next(at);
        }
        self.set(at, slot);
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.size + self.size / 3).max(LEAST);
        let old = std::mem::replace(&mut self.slots, Memory::zeroed(size * SLOT));
        self.size = size;
        for slot in old.chunks_exact(SLOT).map(|slot| u64::from_le_bytes(slot.try_into().expect("eight bytes"))) {
            if slot != 0 {
                self.settle(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_found_however_hashes_collide() {
        let hashes: Vec<u64> = (0..20_000_u64).map(|n| (n % 7_001).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut table = Table::default();
        for (number, &hash) in hashes.iter().enumerate() {
            let free = table.seek(hash, |found| found == number as u32).unwrap_err();
            table.insert(free, hash, number as u32);
        }
        for (number, &hash) in hashes.iter().enumerate() {
            assert_eq!(table.find(hash, |found| found == number as u32), Some(number as u32));
        }
    }

    #[test]
    fn a_table_has_an_end_that_is_followed_by_its_beginning() {
        let mut table = Table::default();
        for number in 0..12 {
            let free = table.seek(u64::MAX, |_| false).unwrap_err();
            table.insert(free, u64::MAX, number);
        }
        assert_eq!(table.find(u64::MAX, |found| found == 11), Some(11));
        assert_eq!(table.find(0, |_| true), None);
    }
}
