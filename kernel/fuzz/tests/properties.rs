//! The properties, tried on the seeds and on random edits of them, where nothing is guided by coverage.
//!
//! `PROPTEST_CASES` says on how many. What once broke a property is among the seeds, and is tried first.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{select, Index};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use shoal_kernel_fuzz::properties;

/// Where, what is done there, a byte that goes there, and how many are cut out or doubled.
type Edit = (Index, u8, u8, usize);

fn hold(name: &str, property: fn(&[u8])) {
    let seeds = seeds(name);
    seeds.iter().for_each(|seed| property(seed));
    holds(prop_oneof![edited(seeds), prop::collection::vec(any::<u8>(), 0..600)], property);
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    let mut paths: Vec<_> = fs::read_dir(folder).expect("seeds").map(|entry| entry.expect("a seed").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a seed")).collect()
}

fn edited(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec(any::<Edit>(), 0..6);
    (select(seeds), edits).prop_map(|(seed, edits)| edits.into_iter().fold(seed, edit))
}

fn holds(bytes: impl Strategy<Value = Vec<u8>>, property: fn(&[u8])) {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let held = runner.run(&bytes, |raw| {
        property(&raw);
        Ok(())
    });
    held.unwrap_or_else(|error| panic!("{error}"));
}

fn edit(mut raw: Vec<u8>, (place, kind, byte, many): Edit) -> Vec<u8> {
    let at = if raw.is_empty() { 0 } else { place.index(raw.len()) };
    let end = raw.len().min(at + 1 + many % 8);
    match kind % 4 {
        0 => raw.insert(at, byte),
        1 => drop(raw.splice(at..end, [byte])),
        2 => drop(raw.drain(at..end)),
        _ => {
            let again = raw[at..end].to_vec();
            drop(raw.splice(at..at, again));
        }
    }
    raw
}

macro_rules! properties_hold {
    ($($name:ident),+) => {
        $(#[test]
        fn $name() {
            hold(stringify!($name), properties::$name);
        })+
    };
}

properties_hold!(batches, deltas, fields, json, lane, lines, messages);

#[test]
fn json_in_pairs() {
    let records = prop::collection::vec(edited(seeds("json")), 2..4);
    holds(records.prop_map(|records| records.join(&0x1e)), properties::json);
}
