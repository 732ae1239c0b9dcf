//! The groups of one metric. Each has a number, a contributions partition and a key in messages.

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::partitioning::partition_of;

/// The groups that have been seen, by number. Number 0 stands for "no group" and has the empty name.
pub struct Groups {
    table: HashTable<u32>, // numbers, by hash of the name
    state: RandomState,    // its seed is random, so that nobody who sends events can choose names that collide
    names: Vec<Box<[u8]>>, // by number
    homes: Vec<u32>,       // contributions partitions, by number
    metric: String,
    label: String, // name/version of the metric
    partitions: u32,
}

impl Groups {
    pub fn new(metric: &str, label: &str, partitions: u32) -> Self {
        let mut groups = Groups {
            table: HashTable::new(),
            state: RandomState::default(),
            names: vec![],
            homes: vec![],
            metric: metric.to_owned(),
            label: label.to_owned(),
            partitions,
        };
        groups.add(b"");
        groups
    }

    /// The number of a group, which gets one if it is new. The name is UTF-8.
    #[inline(always)]
    pub fn number(&mut self, name: Option<&[u8]>) -> u32 {
        let Some(name) = name else { return 0 };
        let hash = self.state.hash_one(name);
        match self.table.find(hash, |&number| *self.names[number as usize] == *name) {
            Some(&found) => found,
            None => self.add(name),
        }
    }

    fn add(&mut self, name: &[u8]) -> u32 {
        let Groups { table, state, names, homes, metric, partitions, .. } = self;
        let number = u32::try_from(names.len()).expect("fewer than 2**32 groups in a partition");
        names.push(name.into());
        homes.push(partition_of(&[metric.as_bytes(), b"|", name].concat(), *partitions));
        table.insert_unique(state.hash_one(name), number, |&other| state.hash_one(&*names[other as usize]));
        number
    }

    /// How many contributions partitions there are.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// The contributions partition of a group.
    pub fn home(&self, number: u32) -> usize {
        self.homes[number as usize] as usize
    }

    /// The key of a group in messages. It contains the metric's version, because contributions of a retired version may
    /// still be in the topic.
    pub fn key(&self, number: u32) -> String {
        let name = std::str::from_utf8(&self.names[number as usize]).expect("names are UTF-8");
        format!("{}|{name}", self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_one_number_and_one_home() {
        let mut groups = Groups::new("basket", "basket/2", 4);
        let numbers: Vec<u32> = [None, Some("GB"), Some("ü"), Some("GB"), Some("")]
            .into_iter()
            .map(|name| groups.number(name.map(str::as_bytes)))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 1, 0]);
        assert_eq!((groups.key(0), groups.key(2)), ("basket/2|".to_owned(), "basket/2|ü".to_owned()));
        assert_eq!(groups.home(1), partition_of(b"basket|GB", 4) as usize);
    }
}
