//! Records of the changelog: a plain model of them agrees, what is written is read back, what is cut off is refused.

use arbitrary::Arbitrary;

use super::made;
use crate::store::Stores;

#[derive(Arbitrary, Debug)]
struct Case {
    width: u8,
    records: Vec<Record>,
    puts: Vec<(u8, u128)>,
    full: u16,
}

#[derive(Arbitrary, Debug)]
struct Record {
    later: u8, // than the record before
    in_order: bool,
    entries: Entries,
}

#[derive(Arbitrary, Debug)]
enum Entries {
    Any(Vec<u8>),
    Made(Vec<(u8, u128)>),
}

/// What a changelog says, in the order in which it will be written again: name, number, record.
#[derive(Default)]
struct Model(Vec<(Vec<u8>, u128, u64)>);

impl Model {
    fn take(&mut self, name: Vec<u8>, number: u128, record: u64, in_order: bool) {
        match self.0.iter().position(|(known, ..)| *known == name) {
            Some(at) if in_order => {
                self.0.remove(at);
                self.0.push((name, number, record));
            }
            Some(at) => self.0[at].1 = number,
            None => self.0.push((name, number, record)),
        }
    }

    fn entries(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(name, number, _)| entry(name, *number)).collect()
    }

    /// The last name of each record, as a number, and the record.
    fn runs(&self) -> Vec<(usize, u64)> {
        let runs = self.0.chunk_by(|one, other| one.2 == other.2);
        runs.scan(0, |end, run| {
            *end += run.len();
            Some((*end, run[0].2))
        })
        .collect()
    }
}

pub fn deltas(raw: &[u8]) {
    let Some(case) = made::<Case>(raw) else { return };
    let width = usize::from(case.width % 17);
    let (mut stores, mut model, mut number) = (Stores::new(None, vec![width], true), Model::default(), 0);
    for Record { later, in_order, entries } in &case.records {
        number += u64::from(*later) + 1;
        let raw = match entries {
            Entries::Any(raw) => raw.clone(),
            Entries::Made(rows) => rows.iter().flat_map(|&(one, held)| row(one, held, width)).collect(),
        };
        let due = read(&raw, width);
        assert!(due.is_some() || matches!(entries, Entries::Any(_)));
        let taken = stores.take(0, 0, number, &raw, *in_order);
        assert_eq!(taken.is_some(), due.is_some());
        let Some(due) = due else { return }; // whoever restores ends here
        due.into_iter().for_each(|(name, held)| model.take(name, held, number, *in_order));
    }
    assert_eq!(stores.settle(0, 0), model.runs());
    written(&stores, &model, width, usize::from(case.full));
    changed(&mut stores, &mut model, width, &case);
}

/// All of it is written in its order, in pieces of any size, and read back.
fn written(stores: &Stores, model: &Model, width: usize, full: usize) {
    let (mut whole, mut first, mut copy) = (vec![], 0, Stores::new(None, vec![width], true));
    while first < model.0.len() {
        let (period, count, entries, cost) = stores.pack(0, 0, first, 1 + full % 7, full);
        assert!(period == 0 && count > 0 && cost >= entries.len());
        copy.take(0, 0, first as u64, &entries, true).expect("what was written is read");
        first += count;
        whole.extend(entries);
    }
    assert_eq!(whole, model.entries());
    copy.settle(0, 0);
    assert_eq!(copy.pack(0, 0, 0, usize::MAX, usize::MAX).2, whole);
    for (name, number, _) in &model.0 {
        let store = copy.look(0, 0).expect("a period without end");
        assert_eq!(store.find(name).map(|at| store.number(at)), Some(*number));
    }
}

/// What changes is written once, with its last number, in the order of its first change.
fn changed(stores: &mut Stores, model: &mut Model, width: usize, case: &Case) {
    let mut due: Vec<(Vec<u8>, u128)> = vec![];
    for &(one, number) in &case.puts {
        let (name, number) = (name(one), number & largest(width));
        let store = &mut stores.of(0)[0];
        let place = store.place(&name);
        store.put(place, number);
        match due.iter_mut().find(|(known, _)| *known == name) {
            Some((_, held)) => *held = number,
            None => due.push((name, number)),
        }
    }
    let packed = stores.changed(0, usize::from(case.full)).expect("no number is too large");
    let whole: Vec<u8> = packed.iter().flat_map(|(_, _, entries, _)| entries.clone()).collect();
    assert_eq!(packed.iter().map(|(_, count, ..)| count).sum::<usize>(), due.len());
    assert_eq!(whole, due.iter().flat_map(|(name, number)| entry(name, *number)).collect::<Vec<_>>());
    assert_eq!(stores.changed(0, 9), Ok(vec![]));
    due.into_iter().for_each(|(name, number)| model.take(name, number, u64::MAX, false));
    assert_eq!(stores.look(0, 0).map_or(0, |store| store.len()), model.0.len());
}

fn largest(width: usize) -> u128 {
    u128::MAX.checked_shr(128 - 8 * width as u32).unwrap_or(0)
}

/// One of some names, short and long; few enough for them to come again.
fn name(one: u8) -> Vec<u8> {
    vec![one / 16; usize::from(one % 16) * 4]
}

fn row(one: u8, number: u128, width: usize) -> Vec<u8> {
    entry(&name(one), number & largest(width))
}

/// An entry: length, name; the low 32 bits doubled, plus one if others follow; those.
fn entry(name: &[u8], number: u128) -> Vec<u8> {
    let mut out = vec![];
    bits(&mut out, name.len() as u128);
    out.extend_from_slice(name);
    let (high, low) = (number >> 32, number & 0xffff_ffff);
    bits(&mut out, low * 2 + u128::from(high > 0));
    if high > 0 {
        bits(&mut out, high);
    }
    out
}

fn bits(out: &mut Vec<u8>, number: u128) {
    let mut rest = number;
    while rest >= 128 {
        out.push((rest % 128) as u8 + 128);
        rest /= 128;
    }
    out.push(rest as u8);
}

/// Names and numbers of entries, read in the plainest way; `None` if they are no entries.
fn read(raw: &[u8], width: usize) -> Option<Vec<(Vec<u8>, u128)>> {
    let (mut rest, mut found) = (raw, vec![]);
    while !rest.is_empty() {
        let length = read_bits(&mut rest, 5)?;
        let (name, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        rest = after;
        let number = read_number(&mut rest, width)?;
        found.push((name.to_vec(), number));
    }
    Some(found)
}

fn read_number(rest: &mut &[u8], width: usize) -> Option<u128> {
    let low_bits = 32.min(8 * width);
    let first = read_bits(rest, (low_bits + 1).div_ceil(7))?;
    if first >> 1 >= 1 << low_bits {
        return None;
    }
    if first & 1 == 0 {
        return Some(first >> 1);
    }
    let high_bits = 8 * width - low_bits;
    let high = read_bits(rest, high_bits.div_ceil(7))?;
    (high < 1 << high_bits).then_some(first >> 1 | high << 32)
}

fn read_bits(rest: &mut &[u8], most: usize) -> Option<u128> {
    let end = rest.iter().take(most).position(|&byte| byte < 128)?;
    let number = rest[..=end].iter().rev().fold(0, |number, &byte| number << 7 | u128::from(byte & 127));
    *rest = &rest[end + 1..];
    Some(number)
}
