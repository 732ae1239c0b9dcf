//! What the changelog has of stores: names with their numbers in bytes, in an order that a restart keeps.
//!
//! Where entries are cut goes by their cost, which counts each number with the most bytes that its kind can take: how many
//! it does take depends on values.
//!
//! The twin is the last part of `Periods` in `shoal/mechanisms/accounts.py`.

use std::hint::black_box;

use crate::entries::{most_bytes, read_fixed, read_length, read_number, write_length, write_number};
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

/// Write an entry; what it costs.
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

/// Find where these names probably are, in loops that wait for nothing they read.
#[inline(always)]
fn approach(store: &Store, entries: &mut [Waiting]) {
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
    black_box(seen);
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
        let (mut at, mut next, mut window) = (0, None, Vec::with_capacity(WINDOW));
        while at < entries.len() {
            while at < entries.len() && window.len() < WINDOW {
                let (size, begin) = read_length(entries, at)?;
                let name = entries.get(begin..begin + size)?;
                let number;
                (number, at) = match fixed {
                    false => read_number(entries, begin + size, width, most)?,
                    true => read_fixed(entries, begin + size, width)?,
                };
                // What is written again follows what came after it, too, and so it is not sought.
                let place = next.filter(|&place| store.has(place, name));
                next = place.and_then(|place: u32| place.checked_add(1));
                window.push(Waiting { name, number, hash: place.is_none().then(|| store.hash(name)), place });
            }
            approach(store, &mut window);
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
