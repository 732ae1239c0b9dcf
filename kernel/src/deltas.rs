//! What the changelog has of stores: names with their numbers in bytes, in an order that a restart keeps.
//!
//! Where entries are cut goes by their cost, which counts each number with the most bytes that its kind can take: how many
//! it does take depends on values.
//!
//! The twins are `shoal/mechanisms/stores/packed.py` and the last part of `Periods` in `shoal/mechanisms/accounts.py`.

use std::hint::black_box;

use crate::store::{has_room, Overflow, Store, Stores};

const GONE: u32 = u32::MAX;
/// Entries that are read before they are restored, so that the accounts of all of them come at once.
const WINDOW: usize = 32;

/// Names of a period: how many, their entries, and what these cost.
pub type Packed = (i64, usize, Vec<u8>, usize);
/// End of a run of names, and the number of the record that has all of the run.
pub type Run = (usize, u64);

/// The order in which names are written again: that in which they came, unless a restart found another.
///
/// While a changelog is restored, each name has a seat, and one that is entered in order moves to the next seat that
/// nobody had. Only names know their seats: what a name leaves is not looked at, which would be a wait for memory.
#[derive(Default)]
pub struct Order {
    places: Vec<u32>, // of the names that were restored; empty where each is at its own number
    // While a changelog is restored:
    seat_of: Vec<u32>,       // by place
    seats: usize,            // that were taken so far
    begins: Vec<(u32, u64)>, // the first seat of each record
}

impl Order {
    #[inline(always)]
    fn place(&self, number: usize) -> u32 {
        self.places.get(number).copied().unwrap_or(number as u32)
    }

    /// Begin with what a record has, over so many names that stand there already.
    fn begin(&mut self, record: u64, names: usize) {
        if self.begins.is_empty() {
            self.begins.push((0, 0));
            (0..names as u32).for_each(|place| self.seat(place));
        }
        if self.begins.last().is_some_and(|&(_, last)| last != record) {
            if self.seats > 2 * self.seat_of.len() + 1024 {
                for (seat, place) in self.close_ranks().into_iter().enumerate() {
                    self.seat_of[place as usize] = seat as u32;
                }
            }
            self.begins.push((self.seats as u32, record));
        }
    }

    /// Make a name the last.
    #[inline(always)]
    fn seat(&mut self, place: u32) {
        let seat = u32::try_from(self.seats).expect("ranks are closed before");
        match self.seat_of.get_mut(place as usize) {
            None => self.seat_of.push(seat),
            Some(before) => *before = seat,
        }
        self.seats += 1;
    }

    /// Leave out the seats of those that have moved: the places of all names, in their order.
    fn close_ranks(&mut self) -> Vec<u32> {
        let mut places = vec![GONE; self.seats];
        for (place, &seat) in self.seat_of.iter().enumerate() {
            places[seat as usize] = place as u32;
        }
        let (mut begins, mut seat, mut kept) = (self.begins.iter_mut().peekable(), 0, 0);
        places.retain(|&place| {
            while let Some((begin, _)) = begins.next_if(|&&mut (begin, _)| begin <= seat) {
                *begin = kept;
            }
            seat += 1;
            kept += u32::from(place != GONE);
            place != GONE
        });
        begins.for_each(|(begin, _)| *begin = kept);
        self.seats = places.len();
        places
    }

    /// All was restored, of so many names: in which records they stand.
    fn settle(&mut self, names: usize) -> Vec<Run> {
        if self.begins.is_empty() {
            return if names == 0 { vec![] } else { vec![(names, 0)] };
        }
        let mut places = self.close_ranks();
        let Order { begins, .. } = std::mem::take(self);
        debug_assert!(places.len() == names);
        let ends = begins.iter().skip(1).map(|&(begin, _)| begin as usize).chain([names]);
        let mut runs: Vec<Run> = vec![];
        for (&(begin, record), end) in begins.iter().zip(ends) {
            if end > begin as usize {
                runs.push((end, record));
            }
        }
        if places.iter().enumerate().any(|(number, &place)| place as usize != number) {
            places.shrink_to_fit();
            self.places = places;
        }
        runs
    }
}

fn write_length(out: &mut Vec<u8>, mut size: usize) {
    while size > 127 {
        out.push((size & 127) as u8 | 128);
        size >>= 7;
    }
    out.push(size as u8);
}

/// A length, and where it ends.
#[inline(always)]
fn read_length(entries: &[u8], mut at: usize) -> Option<(usize, usize)> {
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

const LOW_BITS: usize = 32; // of a number: what stands in its first part

/// The most bytes that each part of a number can take, of as many as its kind has.
fn most_bytes(width: usize) -> (usize, usize) {
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

fn write_number(out: &mut Vec<u8>, number: u128) {
    let (high, low) = (number >> LOW_BITS, u64::from(number as u32) << 1);
    write_bits(out, u128::from(low | u64::from(high > 0)));
    if high > 0 {
        write_bits(out, high);
    }
}

/// Bits in at most so many bytes, 18 or fewer, and where they end.
#[inline(always)]
fn read_bits(entries: &[u8], at: usize, most: usize) -> Option<(u128, usize)> {
    let mut bits = 0;
    for (count, &byte) in entries.get(at..)?.iter().take(most).enumerate() {
        bits |= u128::from(byte & 127) << (7 * count);
        if byte < 128 {
            return Some((bits, at + count + 1));
        }
    }
    None
}

/// A number, and where it ends.
#[inline(always)]
fn read_number(entries: &[u8], at: usize, width: usize, most: (usize, usize)) -> Option<(u128, usize)> {
    let (twice, mut at) = read_bits(entries, at, most.0)?;
    let mut number = twice >> 1;
    if number >> (8 * width).min(LOW_BITS) > 0 {
        return None;
    }
    if twice & 1 == 1 {
        let (high, end) = read_bits(entries, at, most.1)?; // none where all bits are low
        if high >> (8 * width - LOW_BITS) > 0 {
            return None;
        }
        (number, at) = (number | high << LOW_BITS, end);
    }
    Some((number, at))
}

/// A number in all bytes of its kind, as format 3 has it, and where it ends.
fn read_fixed(entries: &[u8], at: usize, width: usize) -> Option<(u128, usize)> {
    let digits = entries.get(at..at + width)?;
    Some((digits.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)), at + width))
}

/// Write an entry; what it costs.
fn write_entry(out: &mut Vec<u8>, store: &Store, place: u32, of_number: usize) -> usize {
    let (name, begin) = (store.name(place), out.len());
    write_length(out, name.len());
    out.extend_from_slice(name);
    let cost = out.len() - begin + of_number;
    write_number(out, store.number(place));
    cost
}

/// Read what the accounts of these entries will be asked for, in loops that wait for nothing they read.
#[inline(always)]
fn approach(store: &Store, entries: &[(&[u8], u64, u128)]) {
    let slots = entries.iter().fold(0, |seen, &(_, hash, _)| seen ^ store.slot(hash));
    black_box(entries.iter().fold(slots, |seen, &(_, hash, _)| seen ^ store.glance(hash)));
}

impl Stores {
    /// What changed of a kind since the last call, in chunks, each of which ends with the entry that fills it.
    pub fn changed(&mut self, kind: usize, full: usize) -> Result<Vec<Packed>, Overflow> {
        let (mut packed, durable) = (vec![], self.durable);
        let most = most_bytes(self.widths[kind]);
        for period in self.periods() {
            let store = &mut self.of(period)[kind];
            let changed = store.take_changed()?;
            if !durable {
                continue;
            }
            let (mut entries, mut count, mut cost) = (vec![], 0, 0);
            for place in changed {
                cost += write_entry(&mut entries, store, place, most.0 + most.1);
                count += 1;
                if cost >= full {
                    let entries = std::mem::take(&mut entries);
                    packed.push((period, std::mem::take(&mut count), entries, std::mem::take(&mut cost)));
                }
            }
            if count > 0 {
                packed.push((period, count, entries, cost));
            }
        }
        Ok(packed)
    }

    /// Names from number `first` on in their order, at most `most`, up to the one that fills the room.
    pub fn pack(&self, kind: usize, period: i64, first: usize, most: usize, full: usize) -> Packed {
        let (mut entries, mut count, mut cost) = (vec![], 0, 0);
        let Some(store) = self.look(period, kind) else { return (period, count, entries, cost) };
        let (low, high) = most_bytes(self.widths[kind]);
        let end = first.saturating_add(most).min(store.len());
        for number in first..end {
            cost += write_entry(&mut entries, store, store.order.place(number), low + high);
            count += 1;
            if cost >= full {
                break;
            }
        }
        (period, count, entries, cost)
    }

    /// Restore entries of a record; those that are `in_order` are now the last in the order, and if they are `fixed`,
    /// numbers are those of format 3.
    pub fn take(
        &mut self,
        kind: usize,
        period: i64,
        record: u64,
        entries: &[u8],
        in_order: bool,
        fixed: bool,
    ) -> Option<()> {
        let width = self.widths[kind];
        let most = most_bytes(width);
        let store = &mut self.of(period)[kind];
        let names = store.len();
        has_room(names, entries.len() / 2).then_some(())?; // an entry has a byte of length, and one of a number
        store.order.begin(record, names);
        let (mut at, mut window) = (0, Vec::with_capacity(WINDOW));
        while at < entries.len() {
            window.clear();
            while at < entries.len() && window.len() < WINDOW {
                let (size, begin) = read_length(entries, at)?;
                let name = entries.get(begin..begin + size)?;
                let number;
                (number, at) = match fixed {
                    false => read_number(entries, begin + size, width, most)?,
                    true => read_fixed(entries, begin + size, width)?,
                };
                window.push((name, store.hash(name), number));
            }
            approach(store, &window);
            for &(name, hash, number) in &window {
                let known = store.len();
                let place = store.restore_hashed(name, hash, number);
                if in_order || store.len() > known {
                    store.order.seat(place);
                }
            }
        }
        Some(())
    }

    /// All of a kind and period was restored: in which records its names stand.
    pub fn settle(&mut self, kind: usize, period: i64) -> Vec<Run> {
        let store = &mut self.of(period)[kind];
        let names = store.len();
        store.order.settle(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores() -> Stores {
        Stores::new(None, vec![2], true)
    }

    #[test]
    fn entries_are_restored_and_written_in_their_order() {
        let mut one = stores();
        one.take(0, 0, 1, b"\x01a\x02\x01b\x04\x01c\x06", false, false).unwrap();
        one.take(0, 0, 2, b"\x01a\x00\x04", true, true).unwrap();
        one.take(0, 0, 3, b"\x01b\x0a\x01d\x0c", false, false).unwrap();
        assert_eq!(one.settle(0, 0), vec![(2, 1), (3, 2), (4, 3)]);
        assert_eq!(one.pack(0, 0, 0, 9, 99), (0, 4, b"\x01b\x0a\x01c\x06\x01a\x08\x01d\x0c".to_vec(), 20));
        assert_eq!(one.pack(0, 0, 2, 9, 1), (0, 1, b"\x01a\x08".to_vec(), 5));
    }

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

    #[test]
    fn ranks_are_closed_over_and_over() {
        let mut one = stores();
        for record in 1..2000 {
            one.take(0, 0, record, &[[1, b'a' + (record % 7) as u8, 2]; 3].concat(), true, false).unwrap();
        }
        let order = &one.look(0, 0).unwrap().order;
        assert!(order.seats < 2000);
        assert_eq!(one.settle(0, 0), (1..=7).map(|end| (end, 1992 + end as u64)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for (fixed, whole, ends) in [
            (true, b"\x01a\x00\x01\x81\x00b\x00\x02".as_slice(), [1, 2, 3, 5, 6, 7, 8].as_slice()),
            (false, b"\x01a\x80\x01\x81\x00b\x80\x02", &[1, 2, 3, 5, 6, 7, 8]),
        ] {
            for &end in ends {
                assert_eq!(stores().take(0, 0, 1, &whole[..end], false, fixed), None, "{end}");
            }
            assert_eq!(stores().take(0, 0, 1, &[255; 9], false, fixed), None);
        }
    }
}
