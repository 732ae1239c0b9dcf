//! Which samples count: the rules of `overall_accounts.py` and `continual_mean/accounts.py`, over stores that the kernel
//! shares with them. Paths in these modules begin in `shoal/mechanisms/`.

mod blocks;
mod mean;
mod overall;

pub use blocks::Bounder;
pub use mean::Mean;
pub use overall::{Once, Overall};

use crate::partitioning::partition_of;
use crate::queue::Queue;
use crate::store::{Store, Stores};

pub const COUNT_BITS: u32 = 32;
const COUNT_MASK: u128 = (1 << COUNT_BITS) - 1;
/// One group, in an account that counts a unit's groups above its samples.
const ONE_MEMBER: u128 = 1 << COUNT_BITS;

/// Why a sample does not count. The first three reasons are only counted; the others make the record a dead letter.
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

/// Which users belong to this source partition.
#[derive(Clone, Copy)]
pub enum Home {
    Everyone, // as in a file, which is all there is
    Murmur2 { partition: u32, partitions: u32 },
}

impl Home {
    #[inline(always)]
    fn has(self, user: &[u8]) -> bool {
        match self {
            Home::Everyone => true,
            Home::Murmur2 { partition, partitions } => partition_of(user, partitions) == partition,
        }
    }
}

/// A sample, as it is given to a rule.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    pub user: &'a [u8],
    pub group: Option<&'a [u8]>,
    pub value: u64, // a grid index
    pub time: i64,
    pub effective: i64,
}

impl Sample<'_> {
    /// The name under which a store has a user in a group: the user's length in two bytes, the user, the group.
    #[inline(always)]
    fn member<'b>(&self, name: &'b mut Vec<u8>) -> &'b [u8] {
        name.clear();
        name.extend_from_slice(&(self.user.len() as u16).to_be_bytes());
        name.extend_from_slice(self.user);
        name.extend_from_slice(self.group.unwrap_or(b""));
        name
    }
}

/// The state of one metric, which its rule changes.
pub struct State<'a> {
    pub stores: Vec<&'a mut Stores>,
    pub queue: &'a mut Queue,
    pub home: Home,
    pub name: Vec<u8>, // a buffer for `Sample::member`
}

/// The rule by which samples of a metric count.
pub enum Rule {
    Mean(Mean),
    Overall(Overall),
}

impl Rule {
    /// The store that has a sample's account; `None` if the period has none yet.
    #[inline(always)]
    pub fn store<'s>(&self, sample: &Sample, state: &'s State) -> Option<&'s Store> {
        let stores = state.stores.first()?;
        stores.look(stores.period_of(sample.effective), 0)
    }

    /// The name of a sample's account; `memory` is a buffer for it.
    #[inline(always)]
    pub fn name<'s>(&self, sample: &Sample<'s>, memory: &'s mut Vec<u8>) -> &'s [u8] {
        match self {
            Rule::Mean(_) if sample.group.is_some() => sample.member(memory),
            _ => sample.user,
        }
    }

    /// Count a sample, and queue the block that it closes. If it does not count, return the reason and change nothing.
    #[inline(always)]
    pub fn add(&self, sample: &Sample, state: &mut State) -> Result<(), Why> {
        match self {
            Rule::Mean(rule) => rule.add(sample, state),
            Rule::Overall(rule) => rule.add(sample, state),
        }
    }
}
