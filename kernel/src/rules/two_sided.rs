//! The twin is `two_sided/accounts.py`: up to `cap` samples of a unit count, over all keys together. Where keys are not
//! declared, a unit that comes to a key is sent once more, as a newcomer, so that the key can be found.

use super::{Sample, State, Why, COUNT_MASK, ONE_MEMBER};
use crate::queue::Block;

const NEWCOMERS: u8 = 1; // the part for units that come to a key, as in `two_sided/came.py`

pub struct TwoSided {
    pub cap: u64,
    pub start: i64,
    pub end: Option<i64>,
    pub declared: Option<Vec<Vec<u8>>>, // sorted
    pub weights: Vec<u64>,              // of a newcomer at its unit's first, second, ... key
    pub once: Option<Once>,
    pub is_event: bool,  // each record is a unit of its own, and there are no accounts
    pub remembered: u64, // the number of keys in which a unit is remembered
}

/// A unit counts once per key, or once per step and key.
#[derive(Clone, Copy, PartialEq)]
pub enum Once {
    Key,
    Step,
}

impl TwoSided {
    /// Refuse a sample that would not count for any unit.
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

    #[inline(always)]
    pub fn add(&self, sample: &Sample, state: &mut State) -> Result<(), Why> {
        let State { stores, queue, home, name } = state;
        self.refuses(sample)?;
        let Sample { user, group, value, effective, .. } = *sample;
        if self.is_event {
            queue.send(group, effective, user, Block::single(1, 0, value, 0));
            if let Some(&weight) = self.weights.first() {
                queue.send(group, effective, user, Block::single(1, 0, weight, NEWCOMERS));
            }
            return Ok(());
        }
        let [units, steps] = &mut stores[..] else { unreachable!("periods of units and of steps") };
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
