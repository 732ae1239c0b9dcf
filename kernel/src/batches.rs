//! Kafka's record batches (format v2), as aiokafka's `DefaultRecordBatch` reads them.
//!
//! A batch is taken only if it is well formed from beginning to end: every length lies within it, every varint ends,
//! every header's name is UTF-8, no bytes are left over. Any other batch is left to aiokafka, which says what is wrong
//! with it. So a batch that was taken can be read again, record by record, and one that a broken disk has changed costs
//! an error and nothing worse.

pub const HEADER: usize = 61;
pub const MAGIC: u8 = 2;
pub const CHECKSUM: usize = 17; // where the checksum is
pub const CHECKED: usize = 21; // where the bytes that it covers begin; they end with the batch
const CODECS: i16 = 0x07; // the bits of the attributes that name the codec
const LOG_APPEND_TIME: i16 = 0x08;

/// Whether a batch's checksum is right.
pub fn is_intact(batch: &[u8]) -> bool {
    match (array(batch, CHECKSUM), batch.get(CHECKED..)) {
        (Some(checksum), Some(checked)) => crc32c::crc32c(checked) == u32::from_be_bytes(checksum),
        _ => false,
    }
}

/// The fields before the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    pub base_offset: i64,
    first_timestamp: i64,
    /// The time of all records, if the broker stamped them.
    appended: Option<i64>,
    count: i32,
    pub is_compressed: bool,
}

fn array<const N: usize>(raw: &[u8], at: usize) -> Option<[u8; N]> {
    raw.get(at..at + N)?.try_into().ok()
}

impl Header {
    pub fn read(raw: &[u8]) -> Option<Header> {
        if raw.len() < HEADER || raw[16] != MAGIC {
            return None;
        }
        let attributes = i16::from_be_bytes(array(raw, 21)?);
        let max_timestamp = i64::from_be_bytes(array(raw, 35)?);
        Some(Header {
            base_offset: i64::from_be_bytes(array(raw, 0)?),
            first_timestamp: i64::from_be_bytes(array(raw, 27)?),
            appended: (attributes & LOG_APPEND_TIME != 0).then_some(max_timestamp),
            count: i32::from_be_bytes(array(raw, 57)?),
            is_compressed: attributes & CODECS != 0,
        })
    }
}

/// A record, in the bytes of its batch.
#[derive(Debug, PartialEq)]
pub struct Record<'a> {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    headers: i64,   // the number of headers in `rest`
    rest: &'a [u8], // what follows that number
}

impl<'a> Record<'a> {
    /// A line of a file: without key, headers or a time of its own.
    pub fn line(value: &'a [u8], offset: i64) -> Self {
        Record { offset, timestamp: -1, key: None, value: Some(value), headers: 0, rest: &[] }
    }

    /// The headers' names and values, in order; `None` if they are not well formed.
    pub fn headers(&self) -> Option<Vec<(&'a str, Option<&'a [u8]>)>> {
        let (mut rest, mut found) = (self.rest, vec![]);
        for _ in 0..self.headers {
            let name = bytes(&mut rest)??;
            found.push((std::str::from_utf8(name).ok()?, bytes(&mut rest)?));
        }
        rest.is_empty().then_some(found)
    }
}

/// A zigzag varint of 64 bits; `None` if it does not end within ten bytes.
#[inline(always)]
fn varint(raw: &mut &[u8]) -> Option<i64> {
    let mut number = 0u64;
    for (place, &byte) in raw.iter().take(10).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            *raw = &raw[place + 1..];
            return Some((number >> 1) as i64 ^ -((number & 1) as i64));
        }
    }
    None
}

/// Bytes that follow their length; a negative length stands for null.
#[inline(always)]
fn bytes<'a>(raw: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = varint(raw)?;
    if length < 0 {
        return Some(None);
    }
    let (found, rest) = raw.split_at_checked(usize::try_from(length).ok()?)?;
    *raw = rest;
    Some(Some(found))
}

/// The record at the beginning of `raw`, which then begins after it.
#[inline(always)]
pub fn record<'a>(header: &Header, raw: &mut &'a [u8]) -> Option<Record<'a>> {
    let length = usize::try_from(varint(raw)?).ok()?;
    let (mut inside, rest) = raw.split_at_checked(length)?;
    *raw = rest;
    varint(&mut inside)?; // attributes, which are not used
    let later = varint(&mut inside)?;
    let timestamp = match header.appended {
        Some(time) => time,
        None => header.first_timestamp.checked_add(later)?,
    };
    let offset = header.base_offset.checked_add(varint(&mut inside)?)?;
    let key = bytes(&mut inside)?;
    let value = bytes(&mut inside)?;
    let headers = varint(&mut inside)?;
    Some(Record { offset, timestamp, key, value, headers, rest: inside })
}

/// The positions of the records from offset `since` on, leaving out any whose offset does not follow the one before;
/// `None` if any record of the batch is not well formed.
pub fn walk(header: &Header, records: &[u8], since: i64) -> Option<Vec<u32>> {
    u32::try_from(records.len()).ok()?;
    let (mut rest, mut next) = (records, since);
    let mut places = Vec::with_capacity((header.count.max(0) as usize).min(records.len() / 7));
    for _ in 0..header.count {
        let place = (records.len() - rest.len()) as u32;
        let record = record(header, &mut rest)?;
        if record.headers == 0 {
            record.rest.is_empty().then_some(())?;
        } else {
            (record.headers > 0).then_some(())?;
            record.headers()?;
        }
        if record.offset >= next {
            next = record.offset.checked_add(1)?;
            places.push(place);
        }
    }
    rest.is_empty().then_some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(count: i32) -> Header {
        Header { base_offset: 100, first_timestamp: 1000, appended: None, count, is_compressed: false }
    }

    /// Three records: a plain one, one that compaction left two offsets later, a tombstone with a header.
    fn batch() -> Vec<u8> {
        let mut raw = vec![];
        raw.extend_from_slice(&[18, 0, 0, 0, 1, 6, b'a', b'b', b'c', 0]);
        raw.extend_from_slice(&[16, 0, 4, 6, 2, b'k', 2, b'v', 0]);
        raw.extend_from_slice(&[22, 0, 1, 8, 1, 1, 2, 2, b'h', 2, b'x']);
        raw.extend_from_slice(&[0]);
        raw[0] = 18;
        raw
    }

    #[test]
    fn records_are_read_where_they_lie() {
        let raw = &batch()[..30][..];
        let raw = &raw[..raw.len() - 1];
        // lengths above are in zigzag: 9, 8 and 11 less one byte of the last header's
        let mut rest = raw;
        let first = record(&header(3), &mut rest).unwrap();
        assert_eq!((first.offset, first.timestamp, first.key, first.value), (100, 1000, None, Some(&b"abc"[..])));
        let second = record(&header(3), &mut rest).unwrap();
        assert_eq!((second.offset, second.timestamp, second.key), (103, 1002, Some(&b"k"[..])));
    }

    #[test]
    fn nothing_that_is_cut_off_is_taken() {
        let plain = [18, 0, 0, 0, 1, 6, b'a', b'b', b'c', 0];
        assert_eq!(walk(&header(1), &plain, 0), Some(vec![0]));
        for end in 0..plain.len() {
            assert_eq!(walk(&header(1), &plain[..end], 0), None);
        }
        assert_eq!(walk(&header(2), &plain, 0), None);
        assert_eq!(walk(&header(0), &plain, 0), None);
        assert_eq!(walk(&header(i32::MAX), &plain, 0), None);
        assert_eq!(walk(&header(-1), &[], 0), Some(vec![]));
    }

    #[test]
    fn what_came_before_is_passed_over() {
        let twice = [18, 0, 0, 0, 1, 6, b'a', b'b', b'c', 0].repeat(2);
        assert_eq!(walk(&header(2), &twice, 0), Some(vec![0])); // of one offset, the first
        assert_eq!(walk(&header(2), &twice, 101), Some(vec![]));
    }

    #[test]
    fn a_checksum_covers_all_that_follows_it() {
        let mut raw = vec![7; 90];
        assert!(!is_intact(&raw) && !is_intact(&raw[..20]) && !is_intact(&[]));
        let checksum = crc32c::crc32c(&raw[21..]);
        raw[17..21].copy_from_slice(&checksum.to_be_bytes());
        assert!(is_intact(&raw));
        for at in 17..90 {
            raw[at] ^= 1;
            assert!(!is_intact(&raw), "{at}");
            raw[at] ^= 1;
        }
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283); // the check value of RFC 3720
    }

    #[test]
    fn varints_are_at_most_ten_bytes_long() {
        assert_eq!(varint(&mut &[0xff; 9].iter().copied().chain([1]).collect::<Vec<u8>>()[..]), Some(i64::MIN));
        assert_eq!(varint(&mut &[0xff; 11][..]), None);
        assert_eq!(varint(&mut &[0x80][..]), None);
        assert_eq!(varint(&mut &[][..]), None);
    }
}
