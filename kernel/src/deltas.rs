//! The changelog's entries: names with their numbers as bytes, written in an order that a restart preserves.
//!
//! Chunks of entries are cut by cost, not by size. The cost of a number is the most bytes that a number of its kind can
//! take; the bytes that it does take depend on values, which must decide nothing.
//!
//! The twin is the last part of `Periods` in `shoal/mechanisms/accounts.py`.

use std::hint::black_box;

use crate::entries::{most_bytes, read_length, read_number, write_length, write_number};
use crate::store::{Overflow, Store, Stores};

const GONE: u32 = u32::MAX;
/// The number of entries that are read before they are restored, so that cache misses overlap.
const WINDOW: usize = 32;

/// A period, the number of its names that are packed, their entries, and the cost of these.
pub type Packed = (i64, usize, Vec<u8>, usize);
/// The end of a run of names, and the number of the changelog record that contains the whole run.
pub type Run = (usize, u64);

/// The order in which names are written again: the one in which they came or, after a restart, the one in which the
/// changelog had them. A place is a name's index in its store.
///
/// While a changelog is restored, each name has a seat, and a name that is entered in order moves to the next free one.
/// Only names know their seats: marking the seat that a name leaves would be one more wait for memory.
#[derive(Default)]
pub struct Order {
    places: Vec<u32>, // the restored names' places, in order; empty if the order is that of the store
    // While a changelog is restored:
    seat_of: Vec<u32>,       // the seat of the name at each place
    seats: usize,            // the number of seats taken so far
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
            if self.seats > 2 * self.seat_of.len() + 1024 {
                for (seat, place) in self.close_ranks().into_iter().enumerate() {
                    self.seat_of[place as usize] = seat as u32;
                }
            }
            self.begins.push((self.seats as u32, record));
        }
    }

    /// Give a name the last seat.
    #[inline(always)]
    fn seat(&mut self, place: u32) {
        let seat = u32::try_from(self.seats).expect("ranks are closed before");
        match self.seat_of.get_mut(place as usize) {
            None => self.seat_of.push(seat),
            Some(before) => *before = seat,
        }
        self.seats += 1;
    }

    /// Remove the seats that names have left; returns the places of all names, in order.
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

    /// Complete the restoration of this many names; returns the records that contain them.
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

/// Write an entry; returns its cost, in which `of_number` is that of the number.
fn write_entry(out: &mut Vec<u8>, store: &Store, place: u32, of_number: usize) -> usize {
    let (name, begin) = (store.name(place), out.len());
    write_length(out, name.len());
    out.extend_from_slice(name);
    let cost = out.len() - begin + of_number;
    write_number(out, store.number(place));
    cost
}

/// An entry that was read and is not restored yet.
struct Waiting<'a> {
    name: &'a [u8],
    number: u128,
    hash: Option<u64>,  // of the name; there is none where its place is sure
    place: Option<u32>, // where the name probably is
}

/// Find the places that these names probably have. Each loop reads addresses that do not depend on one another, so the
/// processor overlaps the cache misses.
#[inline(always)]
fn prefetch(store: &Store, entries: &mut [Waiting]) {
    let mut seen = 0;
    for hash in entries.iter().filter_map(|entry| entry.hash) {
        seen ^= store.slot(hash);
    }
    for entry in entries {
        if let Some(hash) = entry.hash {
            entry.place = store.likely(hash);
            seen ^= entry.place.map_or(0, |place| store.head(place));
        }
    }
    black_box(seen); // else the compiler would leave the reads out
}

impl Stores {
    /// The entries of a kind that changed since the last call, in chunks. A chunk ends with the entry by which its cost
    /// reaches `full`.
    pub fn changed(&mut self, kind: usize, full: usize) -> Result<Vec<Packed>, Overflow> {
        let (mut packed, durable) = (vec![], self.durable);
        let most = most_bytes(self.widths[kind]);
        for (&period, stores) in &mut self.open {
            let store = &mut stores[kind];
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

    /// Restore the entries of a record. If they are `in_order`, their names move to the end of the order.
    /// `None` if they are not well formed.
    pub fn take(&mut self, kind: usize, period: i64, record: u64, entries: &[u8], in_order: bool) -> Option<()> {
        let width = self.widths[kind];
        let most = most_bytes(width);
        self.check_room(entries.len() / 2).ok()?; // an entry has two bytes at least: a length and a number
        let store = &mut self.of(period)[kind];
        let names = store.len();
        store.order.begin(record, names);
        let (mut at, mut next, mut window) = (0, None, Vec::with_capacity(WINDOW));
        while at < entries.len() {
            while at < entries.len() && window.len() < WINDOW {
                let (size, begin) = read_length(entries, at)?;
                let name = entries.get(begin..begin + size)?;
                let number;
                (number, at) = read_number(entries, begin + size, width, most)?;
                // Names that were written in order follow one another in the store, too, and need no search.
                let place = next.filter(|&place| store.has(place, name));
                next = place.and_then(|place: u32| place.checked_add(1));
                window.push(Waiting { name, number, hash: place.is_none().then(|| store.hash(name)), place });
            }
            prefetch(store, &mut window);
            for Waiting { name, number, hash, place } in window.drain(..) {
                let known = store.len();
                let place = match (hash, place) {
                    (None, Some(place)) => place,
                    (_, Some(place)) if store.has(place, name) => place,
                    (hash, _) => store.place_hashed(name, hash.unwrap_or_else(|| store.hash(name))),
                };
                store.restore_at(place, number);
                if in_order || store.len() > known {
                    store.order.seat(place);
                }
                next = place.checked_add(1).filter(|_| in_order);
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
        one.take(0, 0, 1, b"\x01a\x02\x01b\x04\x01c\x06", false).unwrap();
        one.take(0, 0, 2, b"\x01a\x08", true).unwrap();
        one.take(0, 0, 3, b"\x01b\x0a\x01d\x0c", false).unwrap();
        assert_eq!(one.settle(0, 0), vec![(2, 1), (3, 2), (4, 3)]);
        assert_eq!(one.pack(0, 0, 0, 9, 99), (0, 4, b"\x01b\x0a\x01c\x06\x01a\x08\x01d\x0c".to_vec(), 20));
        assert_eq!(one.pack(0, 0, 2, 9, 1), (0, 1, b"\x01a\x08".to_vec(), 5));
    }

    #[test]
    fn ranks_are_closed_over_and_over() {
        let mut one = stores();
        for record in 1..2000 {
            one.take(0, 0, record, &[[1, b'a' + (record % 7) as u8, 2]; 3].concat(), true).unwrap();
        }
        let order = &one.look(0, 0).unwrap().order;
        assert!(order.seats < 2000);
        assert_eq!(one.settle(0, 0), (1..=7).map(|end| (end, 1992 + end as u64)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let whole = b"\x01a\x80\x01\x81\x00b\x80\x02";
        for end in [1, 2, 3, 5, 6, 7, 8] {
            assert_eq!(stores().take(0, 0, 1, &whole[..end], false), None, "{end}");
        }
        assert_eq!(stores().take(0, 0, 1, &[255; 9], false), None);
    }
}
