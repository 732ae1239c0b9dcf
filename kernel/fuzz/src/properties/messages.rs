//! Messages: any reader of JSON finds in them what was sent, once, in its order, and under the hash of its user.

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use blake2::digest::{consts::U16, Mac};
use blake2::Blake2bMac;
use serde_json::{Map, Value};

use super::made;
use crate::groups::Groups;
use crate::messages::{take, Part, TooLarge};
use crate::queue::{Block, Queue};

const KEY: &[u8] = b"a key of the metric";
const HOMES: u32 = 3;
const PARTS: u64 = 256;
const FAR: i64 = 1 << 60; // no time is as far away

#[derive(Arbitrary, Debug)]
struct Case {
    merges: bool,
    every: Option<u32>,
    groups: Vec<String>,
    transactions: Vec<Vec<Sent>>,
}

#[derive(Arbitrary, Debug)]
struct Sent {
    group: Option<u8>,
    effective: i64,
    user: Vec<u8>,
    number: u64,
    level: u8,
    samples: u32,
    total: Total,
    part: Option<u8>,
}

#[derive(Arbitrary, Debug)]
enum Total {
    Small(i32),
    Whole(i64),
    Any(i128),
}

type Row = [Value; 6];
type Sums = BTreeMap<(String, i64, u64), (u64, i128)>; // by key, tick and cell: samples and total

pub fn messages(raw: &[u8]) {
    let Some(case) = made::<Case>(raw) else { return };
    let every = case.every.map(|every| i64::from(every.max(1)));
    let mut queue = Queue::new(Groups::new("m", "m/1", HOMES), KEY, every, case.merges, PARTS);
    for transaction in &case.transactions {
        let (mut rows, mut sums) = (BTreeMap::<String, Vec<Row>>::new(), Sums::new());
        for sent in transaction {
            send(&mut queue, &case, sent, every, &mut rows, &mut sums);
        }
        let fits = |total: i128| i64::try_from(total).is_ok() || u64::try_from(total).is_ok();
        let of_rows = rows.values().flatten().all(|row| !row[5].is_null());
        let taken = take(&mut [&mut queue], HOMES as usize);
        if !of_rows || !sums.values().all(|&(_, total)| fits(total)) {
            assert_eq!(taken, Err(TooLarge));
            return; // the worker ends
        }
        let (mut found_rows, mut found_sums) = (BTreeMap::<String, Vec<Row>>::new(), Sums::new());
        for (home, parts) in taken.expect("totals of 64 bits").iter().enumerate() {
            for part in parts {
                read(part, &mut found_rows, &mut found_sums);
            }
            let keys = parts.iter().flat_map(|part| object(&part.rows).into_iter().chain(object(&part.partials)));
            for (key, _) in keys {
                let mut groups = Groups::new("m", "m/1", HOMES);
                let number = groups.number(key.strip_prefix("m/1|").map(str::as_bytes));
                assert_eq!(groups.home(number), home, "{key}");
            }
        }
        assert_eq!(found_rows, rows);
        assert_eq!(found_sums, sums);
        assert_eq!(take(&mut [&mut queue], HOMES as usize).map(|all| all.iter().all(Vec::is_empty)), Ok(true));
    }
}

/// Send to the queue and to the model.
fn send(
    queue: &mut Queue,
    case: &Case,
    sent: &Sent,
    every: Option<i64>,
    rows: &mut BTreeMap<String, Vec<Row>>,
    sums: &mut Sums,
) {
    let group = sent.group.and_then(|at| case.groups.get(usize::from(at) % case.groups.len().max(1)));
    let key = format!("m/1|{}", group.map_or("", String::as_str));
    let effective = sent.effective % FAR;
    let total = match sent.total {
        Total::Small(total) => total.into(),
        Total::Whole(total) => total.into(),
        Total::Any(total) => total >> 32, // so that no sum of these is beyond 128 bits
    };
    let (level, samples) = (u32::from(sent.level), u64::from(sent.samples));
    let block = Block { number: sent.number, level, samples, total, part: sent.part };
    queue.send(group.map(String::as_bytes), effective, &sent.user, block);
    match (sent.part, every) {
        (Some(part), Some(every)) if case.merges => {
            let tick = effective.div_euclid(every) * every;
            let cell = sums.entry((key, tick, u64::from(sent.level) * 256 + u64::from(part))).or_default();
            *cell = (cell.0 + samples, cell.1 + total);
        }
        _ => {
            let total = match (i64::try_from(total), u64::try_from(total)) {
                (Ok(total), _) => total.into(),
                (_, Ok(total)) => total.into(),
                _ => Value::Null, // too large
            };
            let row =
                [effective.into(), digest(&sent.user).into(), sent.number.into(), level.into(), samples.into(), total];
            rows.entry(key).or_default().push(row);
        }
    }
}

fn digest(user: &[u8]) -> String {
    let keyed = <Blake2bMac<U16> as Mac>::new_from_slice(KEY).expect("a key of at most 64 bytes");
    keyed.chain_update(user).finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn object(raw: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(raw).expect("an object of JSON")
}

fn read(part: &Part, rows: &mut BTreeMap<String, Vec<Row>>, sums: &mut Sums) {
    for (key, found) in object(&part.rows) {
        let found = found.as_array().expect("a list of rows").iter();
        rows.entry(key).or_default().extend(found.map(|row| <Row>::try_from(row.as_array().unwrap().clone()).unwrap()));
    }
    for (key, found) in object(&part.partials) {
        for partial in found.as_array().expect("a list of partials") {
            let [tick, cells] = &partial.as_array().expect("a pair")[..] else { panic!("no pair") };
            for cell in cells.as_array().expect("a list").chunks(3) {
                let [cell, samples, total] = cell else { panic!("a cell has three numbers") };
                let place = (key.clone(), tick.as_i64().unwrap(), cell.as_u64().unwrap());
                let total = total.as_i64().map_or_else(|| total.as_u64().unwrap().into(), i128::from);
                let before = sums.insert(place, (samples.as_u64().unwrap(), total));
                assert_eq!(before, None, "a cell is sent once");
            }
        }
    }
}
