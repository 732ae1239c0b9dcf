//! What the changelog has of stores: names with their numbers in bytes, in an order that a restart keeps.
//!
//! The twins are `shoal/mechanisms/stores/packed.py` and the last part of `Periods` in `shoal/mechanisms/accounts.py`.

use crate::store::{has_room, Overflow, Store, Stores};

const GONE: u32 = u32::MAX;

/// Names of a period: the period, how many, and their entries.
pub type Packed = (i64, usize, Vec<u8>);
/// End of a run of names, and the number of the record that has all of the run.
pub type Run = (usize, u64);

/// The order in which names are written again: that in which they came, unless a restart found another.
#[derive(Default)]
pub struct Order {
    places: Vec<u32>, // of the names that were restored; empty where each is at its own number
    // While a changelog is restored:
    seats: Vec<u32>,         // a name's place, or GONE where it has moved to a later seat
    seat_of: Vec<u32>,       // by place
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
            if self.seats.len() > 2 * self.seat_of.len() + 1024 {
                self.close_ranks();
            }
            self.begins.push((self.seats.len() as u32, record));
        }
    }

    /// Make a name the last.
    #[inline(always)]
    fn seat(&mut self, place: u32) {
        let seat = u32::try_from(self.seats.len()).expect("ranks are closed before");
        match self.seat_of.get_mut(place as usize) {
            None => self.seat_of.push(seat),
            Some(before) => self.seats[std::mem::replace(before, seat) as usize] = GONE,
        }
        self.seats.push(place);
    }

    /// Leave out the seats of those that have moved.
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

    /// All was restored, of so many names: in which records they stand.
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

fn write_entry(out: &mut Vec<u8>, store: &Store, place: u32) {
    let name = store.name(place);
    write_length(out, name.len());
    out.extend_from_slice(name);
    out.extend_from_slice(store.bytes(place));
}

impl Stores {
    /// What changed of a kind since the last call, in chunks, each of which ends with the entry that fills it.
    pub fn changed(&mut self, kind: usize, full: usize) -> Result<Vec<Packed>, Overflow> {
        let (mut packed, durable) = (vec![], self.durable);
        for period in self.periods() {
            let store = &mut self.of(period)[kind];
            let changed = store.take_changed()?;
            if !durable {
                continue;
            }
            let (mut entries, mut count) = (vec![], 0);
            for place in changed {
                write_entry(&mut entries, store, place);
                count += 1;
                if entries.len() >= full {
                    packed.push((period, std::mem::take(&mut count), std::mem::take(&mut entries)));
                }
            }
            if count > 0 {
                packed.push((period, count, entries));
            }
        }
        Ok(packed)
    }

    /// Names from number `first` on in their order, at most `most`, up to the one that fills the room.
    pub fn pack(&self, kind: usize, period: i64, first: usize, most: usize, full: usize) -> (usize, Vec<u8>) {
        let Some(store) = self.look(period, kind) else { return (0, vec![]) };
        let (mut entries, mut count) = (vec![], 0);
        let end = first.saturating_add(most).min(store.len());
        for number in first..end {
            write_entry(&mut entries, store, store.order.place(number));
            count += 1;
            if entries.len() >= full {
                break;
            }
        }
        (count, entries)
    }

    /// Restore entries of a record; those that are `in_order` are now the last in the order.
    pub fn take(&mut self, kind: usize, period: i64, record: u64, entries: &[u8], in_order: bool) -> Option<()> {
        let width = self.widths[kind];
        let store = &mut self.of(period)[kind];
        let names = store.len();
        has_room(names, entries.len() / (width + 1)).then_some(())?;
        store.order.begin(record, names);
        let mut at = 0;
        while at < entries.len() {
            let (size, begin) = read_length(entries, at)?;
            let name = entries.get(begin..begin + size)?;
            let digits = entries.get(begin + size..begin + size + width)?;
            at = begin + size + width;
            let known = store.len();
            let place = store.restore(name, digits.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)));
            if in_order || store.len() > known {
                store.order.seat(place);
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
        one.take(0, 0, 1, b"\x01a\x00\x01\x01b\x00\x02\x01c\x00\x03", false).unwrap();
        one.take(0, 0, 2, b"\x01a\x00\x04", true).unwrap();
        one.take(0, 0, 3, b"\x01b\x00\x05\x01d\x00\x06", false).unwrap();
        assert_eq!(one.settle(0, 0), vec![(2, 1), (3, 2), (4, 3)]);
        assert_eq!(one.pack(0, 0, 0, 9, 99), (4, b"\x01b\x00\x05\x01c\x00\x03\x01a\x00\x04\x01d\x00\x06".to_vec()));
        assert_eq!(one.pack(0, 0, 2, 9, 1), (1, b"\x01a\x00\x04".to_vec()));
    }

    #[test]
    fn ranks_are_closed_over_and_over() {
        let mut one = stores();
        for record in 1..2000 {
            one.take(0, 0, record, &[[1, b'a' + (record % 7) as u8, 0, 1]; 3].concat(), true).unwrap();
        }
        let order = &one.look(0, 0).unwrap().order;
        assert!(order.seats.len() < 2000);
        assert_eq!(one.settle(0, 0), (1..=7).map(|end| (end, 1992 + end as u64)).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let whole = b"\x01a\x00\x01\x81\x00b\x00\x02";
        for end in [1, 2, 3, 5, 6, 7, 8] {
            assert_eq!(stores().take(0, 0, 1, &whole[..end], false), None, "{end}");
        }
        assert_eq!(stores().take(0, 0, 1, &[255; 9], false), None);
    }
}
