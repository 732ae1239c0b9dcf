//! The twin is `stepped/accounts.py`: up to `cap` samples of a unit count, in all groups together, of which it may be in
//! at most `groups`. With `alone` each sample is a unit of its own, and the cap says how many of them a user may have.

use super::{Sample, State, Why, COUNT_MASK, ONE_MEMBER};
use crate::queue::Block;

pub struct Unit {
    pub cap: u64,
    pub groups: u64,
    pub alone: bool,
}

impl Unit {
    #[inline(always)]
    pub fn add(&self, sample: &Sample, state: &mut State) -> Result<(), Why> {
        let State { stores, queue, home, name } = state;
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
            if account / ONE_MEMBER >= u128::from(self.groups) {
                return Err(Why::GroupsLeftOut);
            }
            account += ONE_MEMBER;
        }
        if account & COUNT_MASK >= u128::from(self.cap) {
            return Err(Why::OverCap);
        }
        let number = if self.alone { 1 } else { (account & COUNT_MASK) as u64 + 1 };
        let at = found.unwrap_or_else(|| accounts.place(sample.user));
        accounts.put(at, account + 1);
        if is_new {
            let at = members.place(name);
            members.put(at, 1);
        }
        queue.send(sample.group, sample.effective, sample.user, Block::single(number, 0, sample.value, 0));
        Ok(())
    }
}
