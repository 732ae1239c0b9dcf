//! Numbers by name, in stores by period: the state of a metric's accounts in one source partition.
//!
//! The twins are `Store` and `Periods` in `shoal/mechanisms/accounts.py`; the twin's rules also run over these stores. An
//! account takes 32 bytes for its name and number (`records.rs`), and 10 to 13 bytes in the table that finds it
//! (`table.rs`). As accounts become more, only that table is copied.

pub mod memory;
mod records;
mod table;

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

    /// Set the number of a name to what the changelog has, which need not be written.
    pub fn restore(&mut self, name: &[u8], number: u128) {
        let index = self.place(name);
        self.restore_at(index, number);
    }

    /// The same of a name whose place is known.
    #[inline(always)]
    pub fn restore_at(&mut self, index: u32, number: u128) {
        self.overflowed |= !self.records.set(index, number);
    }

    /// Reverse the order of the names.
    fn reverse(&mut self) {
        self.records.reverse();
        self.table.reverse(self.len().saturating_sub(1) as u32);
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

/// Whether a store with `names` names has room for `more`.
pub fn has_room(names: usize, more: usize) -> bool {
    more <= MOST - names
}

/// The stores of one metric, by period; what never ends is the period with number 0.
pub struct Stores {
    pub length: Option<i64>, // microseconds of a period; None: there is one, without end
    pub widths: Vec<usize>,  // bytes of a number, by kind
    pub durable: bool,       // whether there is a changelog
    open: Vec<(i64, Vec<Store>)>,
    // While a changelog before format 3 is restored: the number of records so far, and of the last one of each kind and
    // period.
    seen: u64,
    last_seen: Vec<Vec<(i64, u64)>>,
    closed: Vec<Vec<i64>>, // by kind: closed periods of which the changelog does not say so yet
}

impl Stores {
    pub fn new(length: Option<i64>, widths: Vec<usize>, durable: bool) -> Self {
        let last_seen = widths.iter().map(|_| vec![]).collect();
        let closed = widths.iter().map(|_| vec![]).collect();
        let mut stores = Stores { length, widths, durable, open: vec![], last_seen, seen: 0, closed };
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
        let found = self.open.iter().rposition(|&(known, _)| known == period); // few are open; the newest is wanted most
        let at = found.unwrap_or_else(|| {
            self.open.push((period, self.widths.iter().map(|&width| Store::new(width)).collect()));
            self.open.len() - 1
        });
        &mut self.open[at].1
    }

    #[inline(always)]
    pub fn look(&self, period: i64, kind: usize) -> Option<&Store> {
        self.open.iter().find(|&&(known, _)| known == period).map(|(_, stores)| &stores[kind])
    }

    /// The numbers of the open periods, ascending.
    pub fn periods(&self) -> Vec<i64> {
        let mut periods: Vec<i64> = self.open.iter().map(|&(period, _)| period).collect();
        periods.sort_unstable();
        periods
    }

    /// The number of names of each kind.
    pub fn sizes(&self) -> Vec<usize> {
        let kinds = 0..self.widths.len();
        kinds.map(|kind| self.open.iter().map(|(_, stores)| stores[kind].len()).sum()).collect()
    }

    /// Restore a record of a changelog before format 3 from its key, without the tag, and its value. `None` if they are
    /// none.
    pub fn restore(&mut self, kind: usize, key: &[u8], value: &[u8]) -> Option<()> {
        if value.len() > 16 || self.length.is_some() && key.len() < 8 {
            return None;
        }
        let number = value.iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
        let Some((period, name)) = key.split_first_chunk::<8>().filter(|_| self.length.is_some()) else {
            self.of(0)[kind].restore(key, number);
            return Some(());
        };
        let period = i64::from_be_bytes(*period);
        self.of(period)[kind].restore(name, number);
        self.seen += 1;
        let of_kind = &mut self.last_seen[kind];
        match of_kind.iter_mut().rev().find(|(known, _)| *known == period) {
            Some((_, last)) => *last = self.seen,
            None => of_kind.push((period, self.seen)),
        }
        Some(())
    }

    /// Complete the restoration of a changelog before format 3: put periods and names into the twin's order, which has
    /// what came last first, for the order shows in what is written.
    pub fn restored(&mut self) {
        let mut order: Vec<i64> = vec![];
        for of_kind in &mut self.last_seen {
            of_kind.sort_unstable_by_key(|&(_, last)| std::cmp::Reverse(last));
            order.extend(of_kind.drain(..).map(|(period, _)| period));
        }
        if self.length.is_some() {
            self.open.sort_by_key(|(period, _)| order.iter().position(|known| known == period));
            self.open.iter_mut().flat_map(|(_, stores)| stores).for_each(Store::reverse);
        }
    }

    /// An error if a store has no room for this many more names.
    pub fn check_room(&self, more: usize) -> Result<(), Overflow> {
        let mut stores = self.open.iter().flat_map(|(_, stores)| stores);
        stores.all(|store| has_room(store.len(), more)).then_some(()).ok_or(Overflow)
    }

    /// Forget the periods that end at or before `promise`: no event can fall into them any more.
    pub fn close(&mut self, promise: Option<i64>) {
        let (Some(length), Some(promise)) = (self.length, promise) else { return };
        for period in self.periods() {
            if i128::from(period + 1) * i128::from(length) <= i128::from(promise) {
                self.forget(period);
                if self.durable {
                    self.closed.iter_mut().for_each(|closed| closed.push(period));
                }
            }
        }
    }

    pub fn forget(&mut self, period: i64) {
        self.open.retain(|&(known, _)| known != period);
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
        assert!(has_room(0, MOST) && has_room(MOST, 0) && !has_room(MOST, 1) && !has_room(1, usize::MAX));
        assert_eq!(stores(None).check_room(MOST + 1), Err(Overflow));
    }

    #[test]
    fn what_is_restored_has_the_order_of_the_twin() {
        let mut stores = stores(Some(10));
        for (period, name) in [(1_i64, "a"), (2, "b"), (1, "c"), (3, "d"), (2, "e")] {
            stores.restore(0, &[&period.to_be_bytes()[..], name.as_bytes()].concat(), &[1]).unwrap();
        }
        stores.restored();
        assert_eq!(stores.open.iter().map(|&(period, _)| period).collect::<Vec<_>>(), [2, 3, 1]);
        let names = |at: usize| (0..stores.open[at].1[0].len() as u32).map(|n| stores.open[at].1[0].name(n)).collect();
        let [first, last]: [Vec<&[u8]>; 2] = [names(0), names(2)];
        assert_eq!((first, last), (vec![&b"e"[..], b"b"], vec![&b"c"[..], b"a"]));
        assert_eq!(stores.of(2)[0].find(b"b"), Some(1));
    }
}
