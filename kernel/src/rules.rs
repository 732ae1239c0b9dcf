//! Whose samples count: the rules of `shoal/mechanisms/*/accounts.py` that the kernel knows, over the same stores.

use crate::partitioning::partition_of;
use crate::queue::{Block, Queue};
use crate::store::Stores;

pub const COUNT_BITS: u32 = 32;
const COUNT_MASK: u128 = (1 << COUNT_BITS) - 1;
const ONE_MEMBER: u128 = 1 << COUNT_BITS; // of an account that counts groups beside samples
const NEWCOMERS: u8 = 1; // the part of a unit that comes to a key (`two_sided/came.py`); a test compares

/// Why a sample does not count; of the first three the reason is counted, of the others the record is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    OverCap,
    GroupsLeftOut,
    Undeclared,
    WrongPartition,
    Late,
    BeforeStart,
    AfterEnd,
}

impl Why {
    pub const ALL: [Why; 7] = [
        Why::OverCap,
        Why::GroupsLeftOut,
        Why::Undeclared,
        Why::WrongPartition,
        Why::Late,
        Why::BeforeStart,
        Why::AfterEnd,
    ];

    pub fn is_counted(self) -> bool {
        matches!(self, Why::OverCap | Why::GroupsLeftOut | Why::Undeclared)
    }

    pub fn name(self) -> &'static str {
        match self {
            Why::OverCap => "over_cap",
            Why::GroupsLeftOut => "groups_left_out",
            Why::Undeclared => "undeclared",
            Why::WrongPartition => "wrong-partition",
            Why::Late => "late",
            Why::BeforeStart => "before-start",
            Why::AfterEnd => "after-end",
        }
    }
}

/// A sample as every rule gets it.
pub struct Sample<'a> {
    pub user: &'a [u8],
    pub group: Option<&'a [u8]>,
    pub value: u64, // a grid index
    pub time: i64,
    pub effective: i64,
}

impl Sample<'_> {
    /// The name of a user in a group: length of the user in two bytes, user, group.
    #[inline(always)]
    fn member<'b>(&self, name: &'b mut Vec<u8>) -> &'b [u8] {
        name.clear();
        name.extend_from_slice(&(self.user.len() as u16).to_be_bytes());
        name.extend_from_slice(self.user);
        name.extend_from_slice(self.group.unwrap_or(b""));
        name
    }
}

/// What turns a unit's samples into blocks.
pub enum Bounder {
    OneByOne,
    Sharp { singles: u64, alone: u64, bits: u32, inner: Vec<u64>, ends: Vec<(u64, u32, u64)>, first_level: u32 },
    Doubling, // BlockBounder
}

impl Bounder {
    /// The account after one more sample, and the block that it closed.
    #[inline(always)]
    fn add(&self, account: u128, value: u64) -> (u128, Option<Block>) {
        let count = (account & COUNT_MASK) as u64 + 1;
        let after = account + (u128::from(value) << COUNT_BITS) + 1;
        match self {
            Bounder::OneByOne => (u128::from(count), Some(Block::single(count, 0, value, 0))),
            Bounder::Sharp { singles, alone, bits, inner, ends, first_level } => {
                if count <= *alone {
                    return (
                        u128::from(count),
                        Some(Block::single(count, level_of(count), value, part_of(inner, value))),
                    );
                }
                if let Some(&(_, block, weight)) = ends.iter().find(|&&(end, _, _)| end == count) {
                    let total = (account >> COUNT_BITS) as i128 + i128::from(value);
                    let closed = if count > *singles {
                        Block {
                            number: singles + 1 + u64::from(block),
                            level: first_level + block,
                            samples: weight,
                            total,
                            part: None,
                        }
                    } else {
                        let both = total << bits | i128::from(value);
                        Block { number: count, level: first_level + block, samples: 1, total: both, part: None }
                    };
                    return (u128::from(count), Some(closed));
                }
                let block =
                    (count <= *singles).then(|| Block::single(count, level_of(count), value, part_of(inner, value)));
                (after, block)
            }
            Bounder::Doubling => {
                if !count.is_power_of_two() {
                    return (after, None);
                }
                let total = (account >> COUNT_BITS) as i128 + i128::from(value);
                let level = count.trailing_zeros();
                let weight = 1 << level.saturating_sub(1);
                (
                    u128::from(count),
                    Some(Block { number: u64::from(level) + 1, level, samples: weight, total, part: None }),
                )
            }
        }
    }
}

/// The level of a single sample: sample 1 is level 0, samples 2**(l-1) + 1 .. 2**l are level l.
fn level_of(count: u64) -> u32 {
    64 - (count - 1).leading_zeros()
}

/// The bucket of a grid index.
fn part_of(inner: &[u64], value: u64) -> u8 {
    inner.partition_point(|&boundary| boundary <= value) as u8
}

/// The rule by which samples of a metric count.
pub enum Rule {
    /// `continual_mean/accounts.py`: up to m samples of a user in a group, in at most so many groups, for ever.
    Mean { cap: u64, groups: u64, bounder: Bounder },
    /// `stepped/accounts.py`: up to m samples of a unit over all groups. Of unit event with a limit, each alone.
    Unit { cap: u64, groups: u64, alone: bool },
    /// `stepped/accounts.py`, unit event: each sample counts.
    Event,
    /// `two_sided/accounts.py`: up to m samples of a unit over all keys, which may have to be found.
    TwoSided(TwoSided),
}

pub struct TwoSided {
    pub cap: u64,
    pub start: i64,
    pub end: Option<i64>,
    pub declared: Option<Vec<Vec<u8>>>, // sorted
    pub weights: Vec<u64>,
    pub once: Option<Once>,
    pub is_event: bool,
    pub remembered: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Once {
    Key,
    Step,
}

/// Whether a user belongs to the partition.
pub enum Home {
    Everyone,
    Murmur2 { partition: u32, partitions: u32 },
}

impl Home {
    #[inline(always)]
    fn has(&self, user: &[u8]) -> bool {
        match *self {
            Home::Everyone => true,
            Home::Murmur2 { partition, partitions } => partition_of(user, partitions) == partition,
        }
    }
}

impl Rule {
    /// Count a sample, and queue what it closes; or say why it does not count, and touch nothing.
    #[inline(always)]
    pub fn add(
        &self,
        sample: &Sample,
        stores: &mut [&mut Stores],
        queue: &mut Queue,
        home: &Home,
        name: &mut Vec<u8>,
    ) -> Result<(), Why> {
        match self {
            Rule::Mean { cap, groups, bounder } => {
                let [accounts, memberships] = stores[0].of(0) else { unreachable!("two kinds of records") };
                let key = if sample.group.is_none() { sample.user } else { sample.member(name) };
                let place = match accounts.find(key) {
                    Some(place) => {
                        if accounts.number(place) & COUNT_MASK >= u128::from(*cap) {
                            return Err(Why::OverCap);
                        }
                        place
                    }
                    None => {
                        if !home.has(sample.user) {
                            return Err(Why::WrongPartition);
                        }
                        if sample.group.is_some() {
                            let count = memberships.find(sample.user).map_or(0, |at| memberships.number(at));
                            if count >= u128::from(*groups) {
                                return Err(Why::GroupsLeftOut);
                            }
                            let at = memberships.place(sample.user);
                            memberships.put(at, count + 1);
                        }
                        accounts.place(key)
                    }
                };
                let (account, block) = bounder.add(accounts.number(place), sample.value);
                accounts.put(place, account);
                if let Some(block) = block {
                    queue.send(sample.group, sample.effective, sample.user, block);
                }
                Ok(())
            }
            Rule::Unit { cap, groups, alone } => {
                let stores = &mut *stores[0];
                let period = stores.period_of(sample.effective);
                if stores.period_of(sample.time) != period {
                    return Err(Why::Late);
                }
                let [accounts, members] = stores.of(period) else { unreachable!("two kinds of records") };
                let found = accounts.find(sample.user);
                if found.is_none() && !home.has(sample.user) {
                    return Err(Why::WrongPartition);
                }
                let mut account = found.map_or(0, |at| accounts.number(at));
                let is_new = sample.group.is_some() && members.find(sample.member(name)).is_none();
                if is_new {
                    if account / ONE_MEMBER >= u128::from(*groups) {
                        return Err(Why::GroupsLeftOut);
                    }
                    account += ONE_MEMBER;
                }
                if account & COUNT_MASK >= u128::from(*cap) {
                    return Err(Why::OverCap);
                }
                let number = if *alone { 1 } else { (account & COUNT_MASK) as u64 + 1 };
                let at = found.unwrap_or_else(|| accounts.place(sample.user));
                accounts.put(at, account + 1);
                if is_new {
                    let at = members.place(name);
                    members.put(at, 1);
                }
                queue.send(sample.group, sample.effective, sample.user, Block::single(number, 0, sample.value, 0));
                Ok(())
            }
            Rule::Event => {
                queue.send(sample.group, sample.effective, sample.user, Block::single(1, 0, sample.value, 0));
                Ok(())
            }
            Rule::TwoSided(rule) => rule.add(sample, stores, queue, home, name),
        }
    }
}

impl TwoSided {
    /// What is wrong with a sample of any unit.
    fn refuses(&self, sample: &Sample) -> Result<(), Why> {
        if sample.effective < self.start {
            return Err(Why::BeforeStart);
        }
        if self.end.is_some_and(|end| sample.effective >= end) {
            return Err(Why::AfterEnd);
        }
        match &self.declared {
            Some(keys) if sample.group.is_none_or(|group| keys.binary_search_by(|key| key[..].cmp(group)).is_err()) => {
                Err(Why::Undeclared)
            }
            _ => Ok(()),
        }
    }

    fn add(
        &self,
        sample: &Sample,
        stores: &mut [&mut Stores],
        queue: &mut Queue,
        home: &Home,
        name: &mut Vec<u8>,
    ) -> Result<(), Why> {
        self.refuses(sample)?;
        let Sample { user, group, value, effective, .. } = *sample;
        if self.is_event {
            queue.send(group, effective, user, Block::single(1, 0, value, 0));
            if let Some(&weight) = self.weights.first() {
                queue.send(group, effective, user, Block::single(1, 0, weight, NEWCOMERS));
            }
            return Ok(());
        }
        let [units, steps] = stores else { unreachable!("periods of units and of steps") };
        let period = units.period_of(effective);
        let is_same = units.period_of(sample.time) == period;
        let [accounts, members] = units.of(period) else { unreachable!("two kinds of records") };
        let found = accounts.find(user);
        if found.is_none() && !home.has(user) {
            return Err(Why::WrongPartition);
        }
        if !is_same {
            return Err(Why::Late);
        }
        let mut account = found.map_or(0, |at| accounts.number(at));
        if account & COUNT_MASK >= u128::from(self.cap) {
            return Err(Why::OverCap);
        }
        let member = sample.member(name);
        let is_new = account / ONE_MEMBER < u128::from(self.remembered) && members.find(member).is_none();
        match self.once {
            Some(Once::Key) if !is_new => return Err(Why::OverCap),
            Some(Once::Step) => {
                let step = steps.period_of(effective);
                let [seen] = steps.of(step) else { unreachable!("one kind of records") };
                if seen.find(member).is_some() {
                    return Err(Why::OverCap);
                }
                let at = seen.place(member);
                seen.put(at, 1);
            }
            _ => {}
        }
        account += 1;
        queue.send(group, effective, user, Block::single((account & COUNT_MASK) as u64, 0, value, 0));
        if is_new {
            let before = (account / ONE_MEMBER) as usize;
            let at = members.place(member);
            members.put(at, 1);
            account += ONE_MEMBER;
            if let Some(&weight) = self.weights.get(before) {
                queue.send(group, effective, user, Block::single(before as u64 + 1, 0, weight, NEWCOMERS));
            }
        }
        let at = found.unwrap_or_else(|| accounts.place(user));
        accounts.put(at, account);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_levels_by_powers_of_two() {
        assert_eq!((1..=9).map(level_of).collect::<Vec<_>>(), [0, 1, 2, 2, 3, 3, 3, 3, 4]);
    }
}
