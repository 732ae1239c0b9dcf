//! The twin is `continual_mean/accounts.py`: up to `cap` samples of a user count in each of at most `groups` groups, in
//! all of time.

use super::blocks::Bounder;
use super::{Sample, State, Why, COUNT_MASK};

pub struct Mean {
    pub cap: u64,
    pub groups: u64,
    pub bounder: Bounder,
}

impl Mean {
    #[inline(always)]
    pub fn add(&self, sample: &Sample, state: &mut State) -> Result<(), Why> {
        let State { stores, queue, home, name } = state;
        let [accounts, memberships] = stores[0].of(0) else { unreachable!("two kinds of records") };
        let key = if sample.group.is_none() { sample.user } else { sample.member(name) };
        let place = match accounts.find(key) {
            Some(place) => {
                if accounts.number(place) & COUNT_MASK >= u128::from(self.cap) {
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
                    if count >= u128::from(self.groups) {
                        return Err(Why::GroupsLeftOut);
                    }
                    let at = memberships.place(sample.user);
                    memberships.put(at, count + 1);
                }
                accounts.place(key)
            }
        };
        let (account, block) = self.bounder.add(accounts.number(place), sample.value);
        accounts.put(place, account);
        if let Some(block) = block {
            queue.send(sample.group, sample.effective, sample.user, block);
        }
        Ok(())
    }
}
