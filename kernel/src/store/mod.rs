//! Numbers by name, in stores by period: the state of a metric's accounts in one source partition.
//!
//! The twins are `Store` and `Periods` in `shoal/mechanisms/accounts.py`; the twin's rules also run over these stores. An
//! account takes 32 bytes for its name and number (`records.rs`), and 10 to 13 bytes in the table that finds it
//! (`table.rs`). As accounts become more, only that table is copied.

pub mod memory;
mod records;
mod table;

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;

use crate::deltas::Order;
use records::Records;
use table::Table;

/// The most names of one kind in one period.
const MOST: usize = u32::MAX as usize - 1;

/// A number is too large for its width, or there are more than `MOST` names.
#[derive(Debug, PartialEq)]
pub struct Overflow;

/// Numbers by name. A name's place is its index in the order in which the names came.
pub struct Store {
    table: Table,
    state: RandomState, // its seed is random, so that nobody who sends events can choose users that collide
    records: Records,
    changed: Vec<u32>, // places of the numbers that changed since the last transaction
    overflowed: bool,
    pub order: Order, // the order in which names are written again to the changelog
}

impl Store {
    /// An empty store, whose numbers have `width` bytes.
    pub fn new(width: usize) -> Self {
        Store {
            table: Table::default(),
            state: RandomState::default(),
            records: Records::new(width),
            changed: vec![],
            overflowed: false,
            order: Order::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn name(&self, index: u32) -> &[u8] {
        self.records.name(index)
    }

    #[inline(always)]
    pub fn number(&self, index: u32) -> u128 {
        self.records.number(index)
    }

    #[inline(always)]
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.table.find(self.hash(name), |index| self.records.name(index) == name)
    }

    #[inline(always)]
    pub fn hash(&self, name: &[u8]) -> u64 {
        self.state.hash_one(name)
    }

    /// The slot of the table that a search for this hash reads first. Reading it fetches it into the caches.
    #[inline(always)]
    pub fn slot(&self, hash: u64) -> u64 {
        self.table.first(hash)
    }

    /// The place that a name with this hash almost certainly has, if it has one.
    #[inline(always)]
    pub fn likely(&self, hash: u64) -> Option<u32> {
        self.table.find(hash, |_| true)
    }

    /// The first byte of the record at a place. Reading it fetches the record into the caches.
    #[inline(always)]
    pub fn head(&self, index: u32) -> u64 {
        u64::from(self.records.head(index))
    }

    /// The head of the record that a search for this hash almost certainly finds, 0 if there is none.
    #[inline(always)]
    pub fn glance(&self, hash: u64) -> u64 {
        self.likely(hash).map_or(0, |index| self.head(index))
    }

    /// Whether this name is at a place.
    #[inline(always)]
    pub fn has(&self, index: u32, name: &[u8]) -> bool {
        (index as usize) < self.len() && self.name(index) == name
    }

    /// The place of a name, which is added if it is new.
    #[inline(always)]
    pub fn place(&mut self, name: &[u8]) -> u32 {
        self.place_hashed(name, self.hash(name))
    }

    /// The same of a name whose hash is known.
    #[inline(always)]
    pub fn place_hashed(&mut self, name: &[u8], hash: u64) -> u32 {
        let Store { table, records, .. } = self;
        match table.seek(hash, |index| records.name(index) == name) {
            Ok(index) => index,
            Err(free) => {
                let index = records.push(name);
                table.insert(free, hash, index);
                index
            }
        }
    }

    /// Set the number at a place; the next transaction writes it.
    #[inline(always)]
    pub fn put(&mut self, index: u32, number: u128) {
        self.overflowed |= !self.records.set(index, number);
        if self.records.mark(index) {
            self.changed.push(index);
        }
    }

    /// Set the number at a place to what the changelog has, which need not be written.
    #[inline(always)]
    pub fn restore_at(&mut self, index: u32, number: u128) {
        self.overflowed |= !self.records.set(index, number);
    }

    /// The places whose numbers were set since the last call, each once, in the order in which that first happened;
    /// an error if a number was too large.
    pub fn take_changed(&mut self) -> Result<Vec<u32>, Overflow> {
        if self.overflowed {
            return Err(Overflow);
        }
        let changed = std::mem::take(&mut self.changed);
        changed.iter().for_each(|&index| self.records.unmark(index));
        Ok(changed)
    }
}

/// The stores of one metric, by period; what never ends is the period with number 0.
pub struct Stores {
    pub length: Option<i64>,             // microseconds of a period; None: there is one, without end
    pub widths: Vec<usize>,              // bytes of a number, by kind
    pub durable: bool,                   // whether there is a changelog
    pub open: BTreeMap<i64, Vec<Store>>, // by period: a store for each kind
    closed: Vec<Vec<i64>>,               // by kind: closed periods of which the changelog does not say so yet
    room: usize,                         // so many more names certainly fit into every store
}

impl Stores {
    pub fn new(length: Option<i64>, widths: Vec<usize>, durable: bool) -> Self {
        let closed = widths.iter().map(|_| vec![]).collect();
        let mut stores = Stores { length, widths, durable, open: BTreeMap::new(), closed, room: 0 };
        if length.is_none() {
            stores.of(0);
        }
        stores
    }

    pub fn period_of(&self, time: i64) -> i64 {
        self.length.map_or(0, |length| time.div_euclid(length))
    }

    /// The stores of a period, one for each kind, which are made if there are none.
    #[inline(always)]
    pub fn of(&mut self, period: i64) -> &mut [Store] {
        let widths = &self.widths;
        self.open.entry(period).or_insert_with(|| widths.iter().map(|&width| Store::new(width)).collect())
    }

    #[inline(always)]
    pub fn look(&self, period: i64, kind: usize) -> Option<&Store> {
        self.open.get(&period).map(|stores| &stores[kind])
    }

    /// The numbers of the open periods, ascending.
    pub fn periods(&self) -> Vec<i64> {
        self.open.keys().copied().collect()
    }

    /// The number of names of each kind.
    pub fn sizes(&self) -> Vec<usize> {
        let kinds = 0..self.widths.len();
        kinds.map(|kind| self.open.values().map(|stores| stores[kind].len()).sum()).collect()
    }

    /// An error if a store has no room for this many more names. Stores are looked at only where they may have grown so
    /// much since the last look, for there can be many.
    pub fn check_room(&mut self, more: usize) -> Result<(), Overflow> {
        if more > self.room {
            self.room = MOST - self.open.values().flatten().map(Store::len).max().unwrap_or(0);
        }
        self.room = self.room.checked_sub(more).ok_or(Overflow)?;
        Ok(())
    }

    /// Forget the periods that end at or before `promise`: no event can fall into them any more.
    pub fn close(&mut self, promise: Option<i64>) {
        let (Some(length), Some(promise)) = (self.length, promise) else { return };
        while let Some(first) = self.open.first_entry() {
            let period = *first.key();
            if (i128::from(period) + 1) * i128::from(length) > i128::from(promise) {
                return;
            }
            first.remove();
            if self.durable {
                self.closed.iter_mut().for_each(|closed| closed.push(period));
            }
        }
    }

    pub fn forget(&mut self, period: i64) {
        self.open.remove(&period);
    }

    /// The periods that were closed since the last call, for the changelog of a kind.
    pub fn cleared(&mut self, kind: usize) -> Vec<i64> {
        std::mem::take(&mut self.closed[kind])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores(length: Option<i64>) -> Stores {
        Stores::new(length, vec![2], true)
    }

    #[test]
    fn a_number_beyond_its_width_is_no_change() {
        let mut stores = stores(None);
        let store = &mut stores.of(0)[0];
        let place = store.place(b"u");
        store.put(place, 0xffff);
        assert_eq!(stores.changed(0, 9), Ok(vec![(0, 1, b"\x01u\xfe\xff\x07".to_vec(), 5)]));
        stores.of(0)[0].put(place, 0x1_0000);
        assert_eq!(stores.changed(0, 9), Err(Overflow));
    }

    #[test]
    fn there_are_fewer_names_than_numbers_for_them() {
        let mut stores = stores(None);
        assert_eq!([MOST + 1, MOST, 1, MOST].map(|more| stores.check_room(more).is_ok()), [false, true, true, true]);
        stores.of(0)[0].place(b"u");
        assert_eq!([MOST, MOST - 1, 0].map(|more| stores.check_room(more).is_ok()), [false, true, true]);
    }

    #[test]
    fn a_period_is_forgotten_once_it_is_over() {
        let mut stores = stores(Some(10));
        for period in [i64::MAX, 3, i64::MIN, -1, 2] {
            stores.of(period);
        }
        stores.close(Some(30));
        assert_eq!(stores.periods(), [3, i64::MAX]);
        assert_eq!(stores.cleared(0), [i64::MIN, -1, 2]);
        stores.close(Some(i64::MAX));
        assert_eq!(stores.periods(), [i64::MAX]);
    }
}
