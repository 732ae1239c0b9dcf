//! The contributions of one metric since the last transaction: rows, which are blocks with a pseudonym, and partials,
//! which are sums by tick and cell.
//!
//! The twin is `Queue` in `shoal/stream/contributions.py`. Groups, ticks and cells are in the order of their first block.

use foldhash::quality::RandomState;
use hashbrown::HashMap;

use crate::groups::Groups;
use crate::pseudonyms::{Pseudonym, Pseudonyms};

pub const PART_BITS: u32 = 8;
const NOWHERE: u32 = u32::MAX;
const SCANNED: usize = 8; // up to this number, the cells of a partial are searched one by one; with more, by a table

/// A closed block of one user's samples.
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

/// A block as it waits to be sent.
pub struct Row {
    pub effective: i64,
    pub pseudonym: Pseudonym,
    pub number: u64,
    pub samples: u64,
    pub total: i128,
    pub level: u32,
    place: u32, // its group's place among the groups that have rows
}

pub struct Cell {
    pub cell: u32,
    pub samples: u64,
    pub total: i128,
}

/// The sums of a group in a tick, by cell.
#[derive(Default)]
pub struct Partial {
    pub group: u32,
    pub start: i64, // start of the tick
    pub cells: Vec<Cell>,
    places: HashMap<u32, u32, RandomState>, // places in `cells`, once there are more than `SCANNED`
}

impl Partial {
    #[inline(always)]
    fn cell(&mut self, cell: u32) -> &mut Cell {
        let Partial { cells, places, .. } = self;
        let found = if cells.len() <= SCANNED {
            cells.iter().position(|known| known.cell == cell)
        } else {
            places.get(&cell).map(|&place| place as usize)
        };
        let place = found.unwrap_or_else(|| {
            cells.push(Cell { cell, samples: 0, total: 0 });
            if cells.len() > SCANNED {
                let first = if places.is_empty() { 0 } else { cells.len() - 1 };
                places.extend((first..cells.len()).map(|place| (cells[place].cell, place as u32)));
            }
            cells.len() - 1
        });
        &mut cells[place]
    }
}

/// The contributions of one group.
pub struct Sent<'a> {
    pub group: u32,
    pub rows: &'a [Row],
    pub partials: &'a [Partial],
}

pub struct Queue {
    merges: bool,
    every: i64,
    pub parts: u64, // the most parts that a level has
    pseudonyms: Pseudonyms,
    pub groups: Groups,
    row_groups: Vec<u32>, // groups that have rows, in the order of their first rows
    row_places: Vec<u32>, // a group's place in `row_groups`, by its number
    rows: Vec<Row>,
    partials: Vec<Partial>,
    partial_places: HashMap<(u32, i64), u32, RandomState>,
    newest: Vec<u32>, // a group's partial that was added to last, by its number
}

impl Queue {
    pub fn new(groups: Groups, key: &[u8], every: Option<i64>, merges: bool, parts: u64) -> Self {
        Queue {
            merges: merges && every.is_some(),
            every: every.unwrap_or(1),
            parts,
            pseudonyms: Pseudonyms::new(key),
            groups,
            row_groups: vec![],
            row_places: vec![],
            rows: vec![],
            partials: vec![],
            partial_places: HashMap::default(),
            newest: vec![],
        }
    }

    /// Queue a user's block, which was closed at this effective time.
    #[inline(always)]
    pub fn send(&mut self, group: Option<&[u8]>, effective: i64, user: &[u8], block: Block) {
        let group = self.groups.number(group);
        match block.part {
            Some(part) if self.merges => self.merge(group, effective, part, &block),
            _ => self.append(group, effective, user, &block),
        }
    }

    fn append(&mut self, group: u32, effective: i64, user: &[u8], block: &Block) {
        let place = place_of(&mut self.row_places, group);
        if *place == NOWHERE {
            *place = self.row_groups.len() as u32;
            self.row_groups.push(group);
        }
        self.rows.push(Row {
            effective,
            pseudonym: self.pseudonyms.of(user),
            number: block.number,
            samples: block.samples,
            total: block.total,
            level: block.level,
            place: *place,
        });
    }

    #[inline(always)]
    fn merge(&mut self, group: u32, effective: i64, part: u8, block: &Block) {
        let start = effective.div_euclid(self.every) * self.every;
        let newest = place_of(&mut self.newest, group);
        let is_newest = self.partials.get(*newest as usize).is_some_and(|last| last.start == start);
        if !is_newest {
            let partials = &mut self.partials;
            *newest = *self.partial_places.entry((group, start)).or_insert_with(|| {
                partials.push(Partial { group, start, ..Partial::default() });
                partials.len() as u32 - 1
            });
        }
        let sums = self.partials[*newest as usize].cell(block.level << PART_BITS | u32::from(part));
        sums.samples += block.samples;
        sums.total += block.total;
    }

    /// Hand out the contributions of each group and empty the queue. First come groups that have rows, in the order of
    /// their first rows, then groups that have only partials, in the order of their first samples.
    pub fn take<E>(&mut self, mut send: impl FnMut(&Queue, Sent) -> Result<(), E>) -> Result<(), E> {
        let mut rows = std::mem::take(&mut self.rows);
        let mut partials = std::mem::take(&mut self.partials);
        self.partial_places.clear();
        self.newest.clear();
        let mut order = std::mem::take(&mut self.row_groups);
        for partial in &partials {
            let place = place_of(&mut self.row_places, partial.group);
            if *place == NOWHERE {
                *place = order.len() as u32;
                order.push(partial.group);
            }
        }
        partials.sort_by_key(|partial| self.row_places[partial.group as usize]);
        rows.sort_by_key(|row| row.place);
        let mut of_groups = rows.chunk_by(|one, other| one.place == other.place);
        let mut partials = &partials[..];
        for &group in &order {
            self.row_places[group as usize] = NOWHERE;
        }
        for group in order {
            let own = partials.iter().take_while(|partial| partial.group == group).count();
            let rows = of_groups.next().unwrap_or_default(); // groups with rows come first
            send(self, Sent { group, rows, partials: &partials[..own] })?;
            partials = &partials[own..];
        }
        Ok(())
    }
}

#[inline(always)]
fn place_of(places: &mut Vec<u32>, group: u32) -> &mut u32 {
    let group = group as usize;
    if group >= places.len() {
        places.resize(group + 1, NOWHERE);
    }
    &mut places[group]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(merges: bool) -> Queue {
        Queue::new(Groups::new("m", "m/1", 2), b"key", Some(10), merges, 4)
    }

    type Summary = (u32, Vec<u64>, Vec<(i64, Vec<(u32, u64, i128)>)>);

    /// Group, numbers of rows, and partials.
    fn taken(queue: &mut Queue) -> Vec<Summary> {
        let mut all = vec![];
        let cells_of = |partial: &Partial| partial.cells.iter().map(|one| (one.cell, one.samples, one.total)).collect();
        let Ok(()) = queue.take(|_, sent| {
            let numbers = sent.rows.iter().map(|row| row.number).collect();
            all.push((sent.group, numbers, sent.partials.iter().map(|one| (one.start, cells_of(one))).collect()));
            Ok::<(), std::convert::Infallible>(())
        });
        all
    }

    #[test]
    fn groups_with_rows_come_first_and_each_in_the_order_of_its_first_block() {
        let mut queue = queue(true);
        let whole = |number| Block { part: None, ..Block::single(number, 0, 5, 0) };
        queue.send(Some(b"sums"), -1, b"u", Block::single(1, 0, 5, 3));
        queue.send(Some(b"both"), 10, b"u", Block::single(1, 0, 5, 3));
        queue.send(Some(b"rows"), 10, b"u", whole(7));
        queue.send(Some(b"both"), 10, b"u", whole(8));
        queue.send(Some(b"rows"), 10, b"u", whole(9));
        queue.send(Some(b"both"), 0, b"u", Block::single(1, 1, 6, 2));
        queue.send(Some(b"both"), 19, b"u", Block::single(1, 0, 7, 3));
        let both = vec![(10, vec![(3, 2, 12)]), (0, vec![(258, 1, 6)])];
        let due = vec![(3, vec![7, 9], vec![]), (2, vec![8], both), (1, vec![], vec![(-10, vec![(3, 1, 5)])])];
        assert_eq!(taken(&mut queue), due);
        assert_eq!(taken(&mut queue), vec![]);
    }

    #[test]
    fn a_partial_finds_its_cells_again_however_many_there_are() {
        let mut queue = queue(true);
        for part in (0..200).chain(0..200) {
            queue.send(None, 0, b"u", Block::single(1, 0, 1, part));
        }
        let due = (0..200).map(|part| (part, 2, 2)).collect();
        assert_eq!(taken(&mut queue), vec![(0, vec![], vec![(0, due)])]);
    }
}
