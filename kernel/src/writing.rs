//! Writes record batches, with the bytes that aiokafka's `DefaultRecordBatchBuilder` makes.

use crate::batches::{CHECKED, CHECKSUM, HEADER, MAGIC};

const BATCH_LENGTH: usize = 8; // positions of fields in a batch
const PRODUCER: usize = 43;
const BEFORE_LENGTH: usize = 12; // bytes of a batch that its length does not count
const TRANSACTIONAL: i16 = 0x10;

/// A batch of records that bear one timestamp; its producer is not known yet.
#[derive(Debug)]
pub struct Batch {
    raw: Vec<u8>,
    count: i32,
}

/// What a record is made of.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [(&'a [u8], &'a [u8])],
}

impl Batch {
    /// A batch without records.
    pub fn new(stamp: i64) -> Batch {
        let mut raw = vec![0; HEADER];
        raw[12..16].fill(0xff); // the leader's epoch, which brokers write
        raw[16] = MAGIC;
        raw[21..23].copy_from_slice(&TRANSACTIONAL.to_be_bytes());
        raw[27..35].copy_from_slice(&stamp.to_be_bytes());
        raw[35..43].copy_from_slice(&stamp.to_be_bytes());
        Batch { raw, count: 0 }
    }

    pub fn count(&self) -> i32 {
        self.count
    }

    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Add a record, unless there are others and the batch would have as many bytes as `full` or more; whether it was
    /// added.
    pub fn add(&mut self, content: &Content<'_>, full: usize) -> bool {
        let inside = content.size(self.count);
        let size = varint_size(inside as i64) + inside;
        if self.count == i32::MAX || (self.count > 0 && self.raw.len() + size >= full) {
            return false;
        }
        self.raw.reserve(size);
        let out = &mut self.raw;
        varint(out, inside as i64);
        out.extend_from_slice(&[0, 0]); // no attributes, and the batch's own time
        varint(out, i64::from(self.count));
        bytes(out, content.key);
        bytes(out, content.value);
        varint(out, content.headers.len() as i64);
        for (name, value) in content.headers {
            bytes(out, Some(name));
            bytes(out, Some(value));
        }
        self.count += 1;
        true
    }

    /// The batch of this producer, whole.
    pub fn finish(&mut self, producer: i64, epoch: i16, sequence: i32) -> &[u8] {
        let raw = &mut self.raw;
        let length = (raw.len() - BEFORE_LENGTH) as i32;
        raw[BATCH_LENGTH..BATCH_LENGTH + 4].copy_from_slice(&length.to_be_bytes());
        raw[23..27].copy_from_slice(&(self.count - 1).to_be_bytes());
        raw[PRODUCER..PRODUCER + 8].copy_from_slice(&producer.to_be_bytes());
        raw[51..53].copy_from_slice(&epoch.to_be_bytes());
        raw[53..57].copy_from_slice(&sequence.to_be_bytes());
        raw[57..61].copy_from_slice(&self.count.to_be_bytes());
        let checksum = crc32c::crc32c(&raw[CHECKED..]);
        raw[CHECKSUM..CHECKED].copy_from_slice(&checksum.to_be_bytes());
        raw
    }
}

impl Content<'_> {
    /// Bytes of the record with this number, after its length.
    fn size(&self, number: i32) -> usize {
        let headers = self.headers.iter().map(|(name, value)| bytes_size(Some(name)) + bytes_size(Some(value)));
        2 + varint_size(i64::from(number))
            + bytes_size(self.key)
            + bytes_size(self.value)
            + varint_size(self.headers.len() as i64)
            + headers.sum::<usize>()
    }
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn varint_size(number: i64) -> usize {
    (64 - (zigzag(number) | 1).leading_zeros() as usize).div_ceil(7)
}

fn varint(out: &mut Vec<u8>, number: i64) {
    let mut left = zigzag(number);
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

fn bytes_size(content: Option<&[u8]>) -> usize {
    content.map_or(1, |content| varint_size(content.len() as i64) + content.len())
}

fn bytes(out: &mut Vec<u8>, content: Option<&[u8]>) {
    match content {
        None => varint(out, -1),
        Some(content) => {
            varint(out, content.len() as i64);
            out.extend_from_slice(content);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batches::{is_intact, record, walk, Header};

    fn content<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Content<'a> {
        Content { key, value, headers: &[] }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut batch = Batch::new(1_700_000_000_000);
        let headers: [(&[u8], &[u8]); 1] = [(b"n", b"12")];
        assert!(batch.add(&content(Some(b"k"), Some(&[7; 300])), 1000));
        assert!(batch.add(&Content { key: None, value: None, headers: &headers }, 1000));
        let raw = batch.finish(5, 6, 7).to_vec();
        assert!(is_intact(&raw));
        let header = Header::read(&raw).unwrap();
        let mut rest = &raw[HEADER..];
        assert_eq!(walk(&header, rest, 0).unwrap().len(), 2);
        let first = record(&header, &mut rest).unwrap();
        assert_eq!((first.key, first.value.unwrap().len(), first.timestamp), (Some(&b"k"[..]), 300, 1_700_000_000_000));
        let second = record(&header, &mut rest).unwrap();
        assert_eq!((second.offset, second.key, second.value), (1, None, None));
        assert_eq!(second.headers().unwrap(), vec![("n", Some(&b"12"[..]))]);
    }

    #[test]
    fn a_batch_is_full_by_its_bytes_and_takes_one_record_of_any_size() {
        let mut batch = Batch::new(0);
        assert!(batch.add(&content(None, Some(&[0; 500])), 100));
        assert!(!batch.add(&content(None, None), 100));
        let full = batch.len() + 8;
        assert!(!batch.add(&content(None, Some(&[1])), full)); // its 8 bytes
        assert!(batch.add(&content(None, None), full));
        assert_eq!((batch.count(), batch.len()), (2, full - 1));
    }

    #[test]
    fn numbers_take_the_bytes_that_are_reckoned() {
        for number in [0, 1, -1, 63, 64, -64, -65, 8191, 8192, i64::from(i32::MAX), i64::MAX, i64::MIN] {
            let mut out = vec![];
            varint(&mut out, number);
            assert_eq!(out.len(), varint_size(number), "{number}");
        }
    }
}
