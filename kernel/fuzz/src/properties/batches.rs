//! Record batches: what is written is read, what is broken is not read in two ways, and no cut is taken.

use arbitrary::Arbitrary;

use super::made;
use crate::batches::{is_intact, record, walk, Header, Record, HEADER};
use crate::writing::{Batch, Content};

#[derive(Arbitrary, Debug)]
struct Case {
    base: i64,
    first_timestamp: i64,
    appended: Option<i64>,
    records: Vec<Entry>,
    since: u8,             // offsets after the first
    count: Option<i32>,    // in place of the true one
    edits: Vec<(u16, u8)>, // places among the records, and what stands there instead
    cut: u16,
}

#[derive(Arbitrary, Debug)]
struct Entry {
    gap: u8,
    later: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

/// A record that no longer shares the bytes it was read of.
#[derive(Clone, Debug, PartialEq)]
struct Read {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

pub fn batches(raw: &[u8]) {
    let Some(case) = made::<Case>(raw) else { return };
    let base = case.base >> 2; // so that no offset is beyond 64 bits
    let since = base.saturating_add(case.since.into());
    let written = written(&case, base);
    let mut body: Vec<u8> = written.iter().flat_map(|one| encoded(base, case.first_timestamp, one)).collect();
    let head = head(&case, base, written.len() as i32);
    let header = Header::read(&head).expect("a header of format 2");
    assert_eq!(header.base_offset, base);
    // what was written is read
    let due: Vec<Read> = written.into_iter().filter(|one| one.offset >= since).map(|one| stamped(&case, one)).collect();
    assert_eq!(taken(&header, &body, since).as_deref(), Some(&due[..]));
    checksum(&head, &body);
    // and of what is broken, if it is taken at all: every record again, and no part of it
    for &(at, byte) in &case.edits {
        if let Some(place) = usize::from(at).checked_rem(body.len()) {
            body[place] = byte;
        }
    }
    let broken = Header::read(&self::head(&case, base, case.count.unwrap_or(due.len() as i32))).expect("as before");
    for header in [&header, &broken] {
        if let Some(found) = taken(header, &body, since) {
            assert!(found.windows(2).all(|pair| pair[0].offset < pair[1].offset));
            assert!(found.iter().all(|one| one.offset >= since));
            again(&case, base, &found);
            if let Some(end) = usize::from(case.cut).checked_rem(body.len()) {
                assert_eq!(walk(header, &body[..end], since), None);
            }
            body.push(0);
            assert_eq!(walk(header, &body, since), None);
            body.pop();
        }
    }
    ours(&case);
    // nor does any header break the reader
    if let Some(header) = Header::read(raw) {
        let _ = taken(&header, &raw[HEADER..], since);
    }
    let _ = is_intact(raw);
}

/// What the kernel writes itself, with its producer's numbers and without, it reads again; no batch is too large.
fn ours(case: &Case) {
    let full = HEADER + usize::from(case.cut);
    let mut batch = Batch::new(case.first_timestamp);
    let mut due = vec![];
    for Entry { key, value, headers, .. } in &case.records {
        let headers: Vec<(&[u8], &[u8])> =
            headers.iter().map(|(name, value)| (name.as_bytes(), value.as_deref().unwrap_or_default())).collect();
        if !batch.add(&Content { key: key.as_deref(), value: value.as_deref(), headers: &headers }, full) {
            assert!(!due.is_empty()); // the first is always in
            continue;
        }
        let owned = |(name, value): (&[u8], &[u8])| {
            (String::from_utf8(name.to_vec()).expect("it was a text"), Some(value.to_vec()))
        };
        let headers = headers.into_iter().map(owned).collect();
        let (offset, timestamp) = (due.len() as i64, case.first_timestamp);
        due.push(Read { offset, timestamp, key: key.clone(), value: value.clone(), headers });
        assert!(due.len() == 1 || batch.len() < full);
    }
    let (size, count) = (batch.len(), batch.count());
    let raw = batch.finish(case.base, case.since.into(), count);
    assert_eq!((raw.len(), count as usize), (size, due.len()));
    assert!(is_intact(raw));
    let header = Header::read(raw).expect("a header of format 2");
    assert_eq!(taken(&header, &raw[HEADER..], 0), Some(due));
}

/// The records of a case, as far as their times have 64 bits.
fn written(case: &Case, base: i64) -> Vec<Read> {
    let (mut next, mut found) = (base, vec![]);
    for entry in &case.records {
        let Some(timestamp) = case.first_timestamp.checked_add(entry.later) else { continue };
        let Entry { gap, key, value, headers, .. } = entry;
        let offset = next + i64::from(*gap);
        found.push(Read { offset, timestamp, key: key.clone(), value: value.clone(), headers: headers.clone() });
        next = offset + 1;
    }
    found
}

/// With the time that the broker stamped, if it did.
fn stamped(case: &Case, one: Read) -> Read {
    Read { timestamp: case.appended.unwrap_or(one.timestamp), ..one }
}

/// All records since an offset, read where they lie, as Python asks for them.
fn taken(header: &Header, body: &[u8], since: i64) -> Option<Vec<Read>> {
    let places = walk(header, body, since)?;
    let read = |place: u32| {
        let Record { offset, timestamp, key, value, .. } = record(header, &mut &body[place as usize..])?;
        let one = record(header, &mut &body[place as usize..])?;
        let owned = |(name, value): (&str, Option<&[u8]>)| (name.to_owned(), value.map(<[u8]>::to_vec));
        let headers = one.headers()?.into_iter().map(owned).collect();
        Some(Read { offset, timestamp, key: key.map(<[u8]>::to_vec), value: value.map(<[u8]>::to_vec), headers })
    };
    Some(places.into_iter().map(|place| read(place).expect("what was taken once is read again")).collect())
}

/// What was read can be written in the shortest form, and is read alike.
fn again(case: &Case, base: i64, found: &[Read]) {
    let fits = |one: &Read| one.offset.checked_sub(base).and(one.timestamp.checked_sub(case.first_timestamp)).is_some();
    if case.appended.is_none() && found.iter().all(fits) {
        let body: Vec<u8> = found.iter().flat_map(|one| encoded(base, case.first_timestamp, one)).collect();
        let header = Header::read(&head(case, base, found.len() as i32)).expect("a header of format 2");
        assert_eq!(taken(&header, &body, i64::MIN).as_deref(), Some(found));
    }
}

/// The header of a batch, in which only what is read of it stands.
fn head(case: &Case, base: i64, count: i32) -> Vec<u8> {
    let mut head = vec![0; HEADER];
    head[..8].copy_from_slice(&base.to_be_bytes());
    head[16] = 2;
    head[22] = if case.appended.is_some() { 8 } else { 0 };
    head[27..35].copy_from_slice(&case.first_timestamp.to_be_bytes());
    head[35..43].copy_from_slice(&case.appended.unwrap_or(0).to_be_bytes());
    head[57..].copy_from_slice(&count.to_be_bytes());
    head
}

fn encoded(base: i64, first_timestamp: i64, one: &Read) -> Vec<u8> {
    let mut inside = vec![0];
    varint(&mut inside, one.timestamp - first_timestamp);
    varint(&mut inside, one.offset - base);
    bytes(&mut inside, one.key.as_deref());
    bytes(&mut inside, one.value.as_deref());
    varint(&mut inside, one.headers.len() as i64);
    for (name, value) in &one.headers {
        bytes(&mut inside, Some(name.as_bytes()));
        bytes(&mut inside, value.as_deref());
    }
    let mut out = vec![];
    varint(&mut out, inside.len() as i64);
    out.extend(inside);
    out
}

fn varint(out: &mut Vec<u8>, number: i64) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn bytes(out: &mut Vec<u8>, content: Option<&[u8]>) {
    varint(out, content.map_or(-1, |content| content.len() as i64));
    out.extend_from_slice(content.unwrap_or_default());
}

/// A checksum is that of these bytes and of no others.
fn checksum(head: &[u8], body: &[u8]) {
    let mut batch = [head, body].concat();
    let checksum = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&checksum.to_be_bytes());
    assert!(is_intact(&batch));
    let last = batch.len() - 1;
    batch[last] ^= 1;
    assert!(!is_intact(&batch));
}
