//! Numbers by name, kept by periods: the state of a metric's accounts in one source partition.
//!
//! The twin is `Store` and `Periods` in `shoal/mechanisms/accounts.py`; its rules run over these, too. Names lie one
//! after the other in one block of memory, numbers in another, so that an account takes some forty bytes.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

pub type Change = (Vec<u8>, Option<Vec<u8>>); // a changelog record; None is a tombstone

/// Numbers by name, in the order in which the names came, and those that changed since the last transaction.
#[derive(Default)]
pub struct Store {
    table: HashTable<u32>,
    state: RandomState, // its seed is random: no stranger can choose users that collide
    names: Vec<u8>,
    ends: Vec<u64>,
    numbers: Vec<u128>,
    is_changed: Vec<bool>,
    changed: Vec<u32>,
}

#[inline(always)]
fn name_at<'a>(names: &'a [u8], ends: &[u64], index: u32) -> &'a [u8] {
    let index = index as usize;
    let begin = if index == 0 { 0 } else { ends[index - 1] as usize };
    &names[begin..ends[index] as usize]
}

impl Store {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn name(&self, index: u32) -> &[u8] {
        name_at(&self.names, &self.ends, index)
    }

    pub fn number(&self, index: u32) -> u128 {
        self.numbers[index as usize]
    }

    #[inline(always)]
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        let hash = self.state.hash_one(name);
        self.table.find(hash, |&index| self.name(index) == name).copied()
    }

    /// The place of a name, which is made if there is none.
    #[inline(always)]
    pub fn place(&mut self, name: &[u8]) -> u32 {
        self.find(name).unwrap_or_else(|| self.add(name))
    }

    fn add(&mut self, name: &[u8]) -> u32 {
        let index = u32::try_from(self.ends.len()).expect("fewer than 2**32 accounts in a partition");
        self.names.extend_from_slice(name);
        self.ends.push(self.names.len() as u64);
        self.numbers.push(0);
        self.is_changed.push(false);
        let Store { table, state, names, ends, .. } = self;
        table.insert_unique(state.hash_one(name), index, |&other| state.hash_one(name_at(names, ends, other)));
        index
    }

    /// Give a name's place a number, which the next transaction writes.
    #[inline(always)]
    pub fn put(&mut self, index: u32, number: u128) {
        self.numbers[index as usize] = number;
        if !std::mem::replace(&mut self.is_changed[index as usize], true) {
            self.changed.push(index);
        }
    }

    /// Give a name the number that the changelog has.
    pub fn restore(&mut self, name: &[u8], number: u128) {
        let index = self.place(name);
        self.numbers[index as usize] = number;
    }

    /// Remove the name that came last.
    fn pop(&mut self) -> Option<Vec<u8>> {
        let end = self.ends.pop()? as usize;
        let begin = self.ends.last().map_or(0, |&before| before as usize);
        debug_assert_eq!(end, self.names.len());
        Some(self.names.split_off(begin))
    }
}

/// One kind of changelog records: a store in each period.
pub struct Kind {
    pub tag: Vec<u8>,
    pub width: usize, // bytes of a number
}

/// The stores of one metric, by period; of what has no end there is one period, number 0.
pub struct Stores {
    pub length: Option<i64>,
    pub kinds: Vec<Kind>,
    durable: bool,
    open: Vec<(i64, Vec<Store>)>,
    unsorted: Vec<Vec<(Vec<u8>, u128)>>, // by kind: records of a changelog that is being restored
    closed: VecDeque<(Vec<u8>, Vec<Store>)>,
}

impl Stores {
    pub fn new(length: Option<i64>, kinds: Vec<Kind>, durable: bool) -> Self {
        let unsorted = kinds.iter().map(|_| vec![]).collect();
        let mut stores = Stores { length, kinds, durable, open: vec![], unsorted, closed: VecDeque::new() };
        if length.is_none() {
            stores.of(0);
        }
        stores
    }

    pub fn period_of(&self, time: i64) -> i64 {
        self.length.map_or(0, |length| time.div_euclid(length))
    }

    /// The stores of a period, which are made if there are none.
    #[inline(always)]
    pub fn of(&mut self, period: i64) -> &mut [Store] {
        let found = self.open.iter().rposition(|&(known, _)| known == period); // few are open; the newest is wanted most
        let at = found.unwrap_or_else(|| {
            self.open.push((period, self.kinds.iter().map(|_| Store::default()).collect()));
            self.open.len() - 1
        });
        &mut self.open[at].1
    }

    pub fn look(&self, period: i64, kind: usize) -> Option<&Store> {
        self.open.iter().find(|&&(known, _)| known == period).map(|(_, stores)| &stores[kind])
    }

    /// The numbers of the open periods, ascending.
    pub fn periods(&self) -> Vec<i64> {
        let mut periods: Vec<i64> = self.open.iter().map(|&(period, _)| period).collect();
        periods.sort_unstable();
        periods
    }

    /// The number of records of each kind, those of closed periods that are not dropped yet included.
    pub fn sizes(&self) -> Vec<usize> {
        let all = || self.open.iter().map(|(_, stores)| stores).chain(self.closed.iter().map(|(_, stores)| stores));
        (0..self.kinds.len()).map(|kind| all().map(|stores| stores[kind].len()).sum()).collect()
    }

    /// What precedes the names of a period in the changelog's keys.
    fn prefix(&self, period: i64) -> Vec<u8> {
        if self.length.is_none() {
            vec![]
        } else {
            period.to_be_bytes().to_vec()
        }
    }

    /// Take a restored record of a kind: its key without the tag, and its value.
    pub fn restore(&mut self, kind: usize, key: &[u8], value: &[u8]) -> Option<()> {
        if value.len() > 16 || self.length.is_some() && key.len() < 8 {
            return None;
        }
        let number = value.iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
        match self.length {
            None => self.of(0)[kind].restore(key, number),
            Some(_) => self.unsorted[kind].push((key.to_vec(), number)),
        }
        Some(())
    }

    /// Sort the records that were taken by periods, the last first, as the twin does: tombstones have that order, too.
    pub fn restored(&mut self) {
        for kind in 0..self.kinds.len() {
            while let Some((key, number)) = self.unsorted[kind].pop() {
                let (period, name) = key.split_first_chunk::<8>().expect("its length was checked");
                self.of(i64::from_be_bytes(*period))[kind].restore(name, number);
            }
        }
    }

    /// The records that changed since the last call.
    pub fn changes(&mut self) -> Vec<Change> {
        let mut changes = vec![];
        for at in 0..self.open.len() {
            let prefix = self.prefix(self.open[at].0);
            for (kind, store) in self.kinds.iter().zip(&mut self.open[at].1) {
                for index in std::mem::take(&mut store.changed) {
                    store.is_changed[index as usize] = false;
                    if self.durable {
                        let key = [&kind.tag[..], &prefix, store.name(index)].concat();
                        changes.push((key, Some(store.number(index).to_be_bytes()[16 - kind.width..].to_vec())));
                    }
                }
            }
        }
        changes
    }

    /// Close the periods that end by the promise; return at most `most` tombstones, of the oldest periods first.
    pub fn close(&mut self, promise: Option<i64>, most: usize) -> Vec<Change> {
        if let (Some(length), Some(promise)) = (self.length, promise) {
            for period in self.periods() {
                if i128::from(period + 1) * i128::from(length) <= i128::from(promise) {
                    let at = self.open.iter().position(|&(known, _)| known == period).expect("it is open");
                    let (_, stores) = self.open.remove(at);
                    self.closed.push_back((self.prefix(period), stores));
                }
            }
        }
        if !self.durable {
            self.closed.clear();
        }
        let mut dropped = vec![];
        while let Some((prefix, stores)) = self.closed.front_mut() {
            if dropped.len() >= most {
                break;
            }
            for (kind, store) in self.kinds.iter().zip(stores.iter_mut()) {
                while dropped.len() < most {
                    let Some(name) = store.pop() else { break };
                    dropped.push(([&kind.tag[..], prefix, &name].concat(), None));
                }
            }
            if stores.iter().all(|store| store.len() == 0) {
                self.closed.pop_front();
            }
        }
        dropped
    }
}
