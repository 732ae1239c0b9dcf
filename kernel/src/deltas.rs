//! The changelog's entries: names with their numbers as bytes, written in an order that a restart preserves.
//!
//! Chunks of entries are cut by cost, not by size. The cost of a number is the most bytes that a number of its kind can
//! take; the bytes that it does take depend on values, which must decide nothing.
//!
//! The twins are `shoal/mechanisms/stores/packed.py`, which has the format, and the last part of `Periods` in
//! `shoal/mechanisms/accounts.py`.

use crate::store::{has_room, Overflow, Store, Stores};

const GONE: u32 = u32::MAX;

/// A period, the number of its names that are packed, their entries, and the cost of these.
pub type Packed = (i64, usize, Vec<u8>, usize);
/// The end of a run of names, and the number of the changelog record that contains the whole run.
pub type Run = (usize, u64);

/// The order in which names are written again: the one in which they came or, after a restart, the one in which the
/// changelog had them. A place is a name's index in its store.
#[derive(Default)]
pub struct Order {
    places: Vec<u32>, // the restored names' places, in order; empty if the order is that of the store
    // While a changelog is restored, each name has a seat:
    seats: Vec<u32>,   // the place of the name in each seat; GONE where the name has moved to a later one
    seat_of: Vec<u32>, // the seat of the name at each place
    begins: Vec<(u32, u64)>, // for each record its first seat and its number
}

impl Order {
    #[inline(always)]
    fn place(&self, number: usize) -> u32 {
        self.places.get(number).copied().unwrap_or(number as u32)
    }

    /// Begin to restore a record, when the store already has this many names.
    fn begin(&mut self, record: u64, names: usize) {
        if self.begins.is_empty() {
            self.begins.push((0, 0));
            (0..names as u32).for_each(|place| self.seat(place));
        }
        if self.begins.last().is_some_and(|&(_, last)| last != record) {
            if self.seats.len() > 2 * self.seat_of.len() + 1024 {
                self.close_ranks();
            }
            self.begins.push((self.seats.len() as u32, record));
        }
    }

    /// Give a name the last seat.
    #[inline(always)]
    fn seat(&mut self, place: u32) {
        let seat = u32::try_from(self.seats.len()).expect("ranks are closed before");
        match self.seat_of.get_mut(place as usize) {
            None => self.seat_of.push(seat),
            Some(before) => self.seats[std::mem::replace(before, seat) as usize] = GONE,
        }
        self.seats.push(place);
    }

    /// Remove the seats that names have left.
    fn close_ranks(&mut self) {
        let mut begins = std::mem::take(&mut self.begins).into_iter().peekable();
        let mut kept = Vec::with_capacity(self.seat_of.len());
        for (seat, &place) in self.seats.iter().enumerate() {
            while let Some((_, record)) = begins.next_if(|&(begin, _)| begin as usize <= seat) {
                self.begins.push((kept.len() as u32, record));
            }
            if place != GONE {
                self.seat_of[place as usize] = kept.len() as u32;
                kept.push(place);
            }
        }
        self.begins.extend(begins.map(|(_, record)| (kept.len() as u32, record)));
        self.seats = kept;
    }

    /// Complete the restoration of this many names; returns the records that contain them.
    fn settle(&mut self, names: usize) -> Vec<Run> {
        if self.begins.is_empty() {
            return if names == 0 { vec![] } else { vec![(names, 0)] };
        }
        self.close_ranks();
        let Order { places, seats, begins, .. } = std::mem::take(self);
        debug_assert!(places.is_empty() && seats.len() == names);
        let ends = begins.iter().skip(1).map(|&(begin, _)| begin as usize).chain([seats.len()]);
        let mut runs: Vec<Run> = vec![];
        for (&(begin, record), end) in begins.iter().zip(ends) {
            if end > begin as usize {
                runs.push((end, record));
            }
        }
        if seats.iter().enumerate().any(|(number, &place)| place as usize != number) {
            self.places = seats;
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

/// The length at this position, and the position after it.
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

const LOW_BITS: usize = 32; // bits of a number that are in its first part

/// The most bytes that each of the two parts of a number can take, if its kind has `width` bytes.
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

/// Bits in at most `most` bytes, which are 18 or fewer, and the position after them.
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

/// The number at this position, and the position after it.
#[inline(always)]
fn read_number(entries: &[u8], at: usize, width: usize, most: (usize, usize)) -> Option<(u128, usize)> {
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

/// The number at this position with all bytes of its kind, as in format 3, and the position after it.
fn read_fixed(entries: &[u8], at: usize, width: usize) -> Option<(u128, usize)> {
    let digits = entries.get(at..at + width)?;
    Some((digits.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)), at + width))
}

/// Write an entry; returns its cost, in which `of_number` is that of the number.
fn write_entry(out: &mut Vec<u8>, store: &Store, place: u32, of_number: usize) -> usize {
    let (name, begin) = (store.name(place), out.len());
    write_length(out, name.len());
    out.extend_from_slice(name);
    let cost = out.len() - begin + of_number;
    write_number(out, store.number(place));
    cost
}

impl Stores {
    /// The entries of a kind that changed since the last call, in chunks. A chunk ends with the entry by which its cost
    /// reaches `full`.
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

    /// The entries from number `first` on in the order, at most `most`, up to the one by which the cost reaches `full`.
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

    /// Restore the entries of a record. If they are `in_order`, their names move to the end of the order. If they are
    /// `fixed`, numbers have the fixed width of format 3. `None` if they are not well formed.
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
        has_room(names, entries.len() / 2).then_some(())?; // an entry has two bytes at least: a length and a number
        store.order.begin(record, names);
        let mut at = 0;
        while at < entries.len() {
            let (size, begin) = read_length(entries, at)?;
            let name = entries.get(begin..begin + size)?;
            let number;
            (number, at) = match fixed {
                false => read_number(entries, begin + size, width, most)?,
                true => read_fixed(entries, begin + size, width)?,
            };
            let known = store.len();
            let place = store.restore(name, number);
            if in_order || store.len() > known {
                store.order.seat(place);
            }
        }
        Some(())
    }

    /// Complete the restoration of a kind and period; returns the records that contain its names.
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
        assert!(order.seats.len() < 2000);
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
