//! The twin is `overall_accounts.py`: up to `samples` samples of a unit count, over all keys together. A unit that is new
//! in a key is sent once more, as a newcomer, where keys that nobody declared are to be found.

use super::{Sample, State, Why, COUNT_MASK, ONE_MEMBER};
use crate::queue::{Block, Queue};

const NEWCOMERS: u8 = 1; // the part for units that come to a key, as in `linear/came.py`

pub struct Overall {
    pub samples: Option<u64>, // `None`: each sample is a unit, which has no account
    pub keys: u64,            // in which a unit is remembered
    pub leaves_out: bool,     // samples in further keys do not count
    pub alone: bool,          // each sample is a unit of its own, and the account is its user's
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub declared: Option<Vec<Vec<u8>>>, // sorted
    pub newcomers: Vec<u64>,            // weights of a unit in its first, second, ... key
    pub once: Option<Once>,
}

/// A unit counts once per key, or once per step and key.
#[derive(Clone, Copy, PartialEq)]
pub enum Once {
    Key,
    Step,
}

impl Overall {
    /// Refuse a sample that would not count for any unit.
    #[inline(always)]
    fn refuses(&self, sample: &Sample) -> Result<(), Why> {
        if self.start.is_some_and(|start| sample.effective < start) {
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

    #[inline(always)]
    pub fn add(&self, sample: &Sample, state: &mut State) -> Result<(), Why> {
        let State { stores, queue, home, name } = state;
        self.refuses(sample)?;
        let Some(cap) = self.samples else {
            self.send(sample, queue, 1, Some(0));
            return Ok(());
        };
        let [units, steps] = &mut stores[..] else { unreachable!("periods of units and of steps") };
        let period = units.period_of(sample.effective);
        if units.period_of(sample.time) != period {
            return Err(Why::Late);
        }
        let [accounts, members] = units.of(period) else { unreachable!("two kinds of records") };
        let found = accounts.find(sample.user);
        if found.is_none() && !home.has(sample.user) {
            return Err(Why::WrongPartition);
        }
        let mut account = found.map_or(0, |at| accounts.number(at));
        let keys = account / ONE_MEMBER;
        let has_keys = self.keys > 0 || self.once.is_some();
        let member = if has_keys { sample.member(name) } else { b"" };
        let has_room = keys < u128::from(self.keys);
        let is_new = (has_room || self.leaves_out) && members.find(member).is_none();
        if is_new && !has_room {
            return Err(Why::GroupsLeftOut);
        }
        if account & COUNT_MASK >= u128::from(cap) {
            return Err(Why::OverCap);
        }
        match self.once {
            Some(Once::Key) if !is_new => return Err(Why::OverCap),
            Some(Once::Step) => {
                let step = steps.period_of(sample.effective);
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
        let number = if self.alone { 1 } else { (account & COUNT_MASK) as u64 };
        self.send(sample, queue, number, is_new.then_some(keys as usize));
        if is_new {
            let at = members.place(member);
            members.put(at, 1);
            account += ONE_MEMBER;
        }
        let at = found.unwrap_or_else(|| accounts.place(sample.user));
        accounts.put(at, account);
        Ok(())
    }

    /// Send the `number`-th sample of a unit, and the newcomer in its key with number `key` from 0 if that is new.
    #[inline(always)]
    fn send(&self, sample: &Sample, queue: &mut Queue, number: u64, key: Option<usize>) {
        let Sample { user, group, value, effective, .. } = *sample;
        queue.send(group, effective, user, Block::single(number, 0, value, 0));
        if let Some((key, &weight)) = key.and_then(|key| Some((key, self.newcomers.get(key)?))) {
            queue.send(group, effective, user, Block::single(key as u64 + 1, 0, weight, NEWCOMERS));
        }
    }
}
