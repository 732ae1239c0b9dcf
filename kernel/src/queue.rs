//! What one metric has to send since the last transaction: rows of blocks with a pseudonym, and sums by tick and cell.
//!
//! The twin is `Queue` in `shoal/stream/contributions.py`. Order is that of the first block, everywhere.

use std::hash::BuildHasher;

use blake2b_simd::{Params, State};
use foldhash::quality::RandomState;
use hashbrown::{HashMap, HashTable};

const PART_BITS: u32 = 8;

/// A closed block of one unit's samples.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub number: u64,
    pub level: u32,
    pub samples: u64,
    pub total: i128,
    pub part: Option<u8>,
}

impl Block {
    #[inline(always)]
    pub fn single(number: u64, level: u32, value: u64, part: u8) -> Self {
        Block { number, level, samples: 1, total: i128::from(value), part: Some(part) }
    }
}

pub struct Row {
    pub effective: i64,
    pub pseudonym: [u8; 16],
    pub number: u64,
    pub level: u32,
    pub samples: u64,
    pub total: i128,
}

impl Row {
    /// The digits of the pseudonym.
    pub fn hexadecimal(&self) -> [u8; 32] {
        std::array::from_fn(|at| b"0123456789abcdef"[usize::from(self.pseudonym[at / 2] >> (4 * (1 - at % 2)) & 15)])
    }
}

pub struct Cell {
    pub cell: u32,
    pub samples: u64,
    pub total: i128,
}

/// Sums of a group in a tick, by cell.
#[derive(Default)]
pub struct Partial {
    pub group: u32,
    pub tick: i64,
    pub cells: Vec<Cell>,
    places: HashMap<u32, u32, RandomState>,
}

/// Names of groups, each with a number; number 0 is that of no group.
#[derive(Default)]
struct Groups {
    table: HashTable<u32>,
    state: RandomState,
    names: Vec<Box<[u8]>>,
}

impl Groups {
    #[inline(always)]
    fn number(&mut self, name: Option<&[u8]>) -> u32 {
        let Some(name) = name else { return 0 };
        let Groups { table, state, names } = self;
        let hash = state.hash_one(name);
        if let Some(&found) = table.find(hash, |&number| *names[number as usize - 1] == *name) {
            return found;
        }
        names.push(name.into());
        let number = names.len() as u32;
        table.insert_unique(hash, number, |&other| state.hash_one(&*names[other as usize - 1]));
        number
    }
}

pub struct Queue {
    merges: bool,
    every: i64,
    pseudonyms: State,
    groups: Groups,
    rows: Vec<(u32, Vec<Row>)>,
    row_places: HashMap<u32, usize, RandomState>,
    partials: Vec<Partial>,
    partial_places: HashMap<(u32, i64), usize, RandomState>,
    newest: usize, // the partial that was added to last
}

impl Queue {
    pub fn new(key: &[u8], every: Option<i64>, merges: bool) -> Self {
        Queue {
            merges: merges && every.is_some(),
            every: every.unwrap_or(1),
            pseudonyms: Params::new().hash_length(16).key(key).to_state(),
            groups: Groups::default(),
            rows: vec![],
            row_places: HashMap::default(),
            partials: vec![],
            partial_places: HashMap::default(),
            newest: 0,
        }
    }

    /// Queue a block of a user's, closed at an effective time.
    #[inline(always)]
    pub fn send(&mut self, group: Option<&[u8]>, effective: i64, user: &[u8], block: Block) {
        let group = self.groups.number(group);
        match block.part {
            Some(part) if self.merges => self.merge(group, effective, part, &block),
            _ => self.append(group, effective, user, &block),
        }
    }

    fn append(&mut self, group: u32, effective: i64, user: &[u8], block: &Block) {
        let digest = self.pseudonyms.clone().update(user).finalize();
        let row = Row {
            effective,
            pseudonym: digest.as_bytes().try_into().expect("16 bytes were asked for"),
            number: block.number,
            level: block.level,
            samples: block.samples,
            total: block.total,
        };
        let rows = &mut self.rows;
        let place = *self.row_places.entry(group).or_insert_with(|| {
            rows.push((group, vec![]));
            rows.len() - 1
        });
        rows[place].1.push(row);
    }

    #[inline(always)]
    fn merge(&mut self, group: u32, effective: i64, part: u8, block: &Block) {
        let tick = effective.div_euclid(self.every);
        let is_newest = self.partials.get(self.newest).is_some_and(|last| last.tick == tick && last.group == group);
        if !is_newest {
            let partials = &mut self.partials;
            self.newest = *self.partial_places.entry((group, tick)).or_insert_with(|| {
                partials.push(Partial { group, tick, ..Partial::default() });
                partials.len() - 1
            });
        }
        let Partial { cells, places, .. } = &mut self.partials[self.newest];
        let cell = block.level << PART_BITS | u32::from(part);
        let place = *places.entry(cell).or_insert_with(|| {
            cells.push(Cell { cell, samples: 0, total: 0 });
            cells.len() as u32 - 1
        });
        let sums = &mut cells[place as usize];
        sums.samples += block.samples;
        sums.total += block.total;
    }

    /// A group's name; `None` for that of no group.
    pub fn group(&self, number: u32) -> Option<&str> {
        let name = self.groups.names.get((number as usize).checked_sub(1)?)?;
        Some(std::str::from_utf8(name).expect("names are UTF-8"))
    }

    pub fn every(&self) -> i64 {
        self.every
    }

    pub fn take_rows(&mut self) -> Vec<(u32, Vec<Row>)> {
        self.row_places.clear();
        std::mem::take(&mut self.rows)
    }

    pub fn take_partials(&mut self) -> Vec<Partial> {
        self.partial_places.clear();
        self.newest = 0;
        std::mem::take(&mut self.partials)
    }
}
