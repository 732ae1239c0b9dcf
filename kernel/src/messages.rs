//! Writes the contributions of one transaction as JSON: for each home (contributions partition) the contents of its
//! messages, each of bounded size.
//!
//! The twin is `Parts` in `shoal/stream/contributions.py`; its opening explains why costs and cuts must be decided by
//! pattern alone. The bytes are those that `Message.encode` in `shoal/models/records.py` writes.

use crate::pseudonyms::Pseudonym;
use crate::queue::{Partial, Queue, Row, Sent, PART_BITS};

const MESSAGE_BYTES: u64 = if cfg!(miri) { 4_500 } else { 400_000 }; // Miri would take half an hour
const ROW_BYTES: u64 = 90;
const ROWS: usize = (MESSAGE_BYTES / ROW_BYTES) as usize;
const CELL_BYTES: u64 = 35;
const CHARACTER_BYTES: u64 = 6; // of a key, at most
const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";

/// The contents of one message: rows by key and partials by key, each an object of JSON.
#[derive(Debug, PartialEq)]
pub struct Part {
    pub rows: Vec<u8>,
    pub partials: Vec<u8>,
}

/// A total has more than 64 bits, which `orjson` does not write either.
#[derive(Debug, PartialEq)]
pub struct TooLarge;

/// Empty the queues; returns the parts for each home, none for a home that gets nothing.
pub fn take(queues: &mut [&mut Queue], homes: usize) -> Result<Vec<Vec<Part>>, TooLarge> {
    let mut all: Vec<Parts> = (0..homes).map(|_| Parts::default()).collect();
    for queue in queues {
        queue.take(|queue, sent| {
            let key = queue.groups.key(sent.group);
            all[queue.groups.home(sent.group)].add(&key, &sent, queue.parts)
        })?;
    }
    Ok(all.into_iter().map(Parts::closed).collect())
}

/// The parts for one home.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    size: u64,
}

impl Parts {
    /// The number of the last part, after opening a new one if there is no room for this cost.
    fn open(&mut self, cost: u64) -> usize {
        if self.parts.is_empty() || self.size + cost > MESSAGE_BYTES {
            self.parts.push(Part { rows: b"{".to_vec(), partials: b"{".to_vec() });
            self.size = 0;
        }
        self.size += cost;
        self.parts.len() - 1
    }

    /// Add the contributions of a group; `parts` is the number of parts that a level of the metric has.
    fn add(&mut self, key: &str, sent: &Sent, parts: u64) -> Result<(), TooLarge> {
        let name = text(key);
        let least = CHARACTER_BYTES * key.chars().count() as u64;
        let mut last = None; // the part that has the key already
        for rows in sent.rows.chunks(ROWS) {
            let at = self.open(least + rows.len() as u64 * ROW_BYTES);
            let out = &mut self.parts[at].rows;
            enter(out, &name, last == Some(at));
            for (number, row) in rows.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                write_row(out, row)?;
            }
            out.push(b']');
            last = Some(at);
        }
        last = None;
        for partial in sent.partials {
            let at = self.open(least + ROW_BYTES + most_cells(partial, parts) * CELL_BYTES);
            let out = &mut self.parts[at].partials;
            enter(out, &name, last == Some(at));
            write_partial(out, partial)?;
            out.push(b']');
            last = Some(at);
        }
        Ok(())
    }

    fn closed(mut self) -> Vec<Part> {
        for part in &mut self.parts {
            part.rows.push(b'}');
            part.partials.push(b'}');
        }
        self.parts
    }
}

/// Begin the list of a key, or continue it if `is_there`: it is then the last one, and its end is opened again.
fn enter(out: &mut Vec<u8>, name: &[u8], is_there: bool) {
    if is_there {
        *out.last_mut().expect("the list's end") = b',';
        return;
    }
    if out.len() > 1 {
        out.push(b',');
    }
    out.extend_from_slice(name);
    out.extend_from_slice(b":[");
}

/// The most cells that this many samples of each level can fill, if a level has this many parts.
fn most_cells(partial: &Partial, parts: u64) -> u64 {
    let mut samples: Vec<(u32, u64)> = partial.cells.iter().map(|one| (one.cell >> PART_BITS, one.samples)).collect();
    samples.sort_unstable_by_key(|&(level, _)| level);
    let levels = samples.chunk_by(|one, other| one.0 == other.0);
    levels.map(|level| level.iter().map(|&(_, count)| count).sum::<u64>().min(parts)).sum()
}

fn write_row(out: &mut Vec<u8>, row: &Row) -> Result<(), TooLarge> {
    out.push(b'[');
    write(out, row.effective);
    out.extend_from_slice(b",\"");
    out.extend_from_slice(&hexadecimal(&row.pseudonym));
    out.extend_from_slice(b"\",");
    write(out, row.number);
    out.push(b',');
    write(out, row.level);
    out.push(b',');
    write(out, row.samples);
    out.push(b',');
    write_total(out, row.total)?;
    out.push(b']');
    Ok(())
}

fn write_partial(out: &mut Vec<u8>, partial: &Partial) -> Result<(), TooLarge> {
    out.push(b'[');
    write(out, partial.start);
    out.extend_from_slice(b",[");
    for (number, sums) in partial.cells.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write(out, sums.cell);
        out.push(b',');
        write(out, sums.samples);
        out.push(b',');
        write_total(out, sums.total)?;
    }
    out.extend_from_slice(b"]]");
    Ok(())
}

fn hexadecimal(pseudonym: &Pseudonym) -> [u8; 2 * size_of::<Pseudonym>()] {
    std::array::from_fn(|at| HEXADECIMAL[usize::from(pseudonym[at / 2] >> (4 * (1 - at % 2)) & 15)])
}

fn write(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_total(out: &mut Vec<u8>, total: i128) -> Result<(), TooLarge> {
    if let Ok(total) = i64::try_from(total) {
        write(out, total);
    } else {
        write(out, u64::try_from(total).map_err(|_| TooLarge)?);
    }
    Ok(())
}

/// A JSON string, as `orjson` writes it.
fn text(text: &str) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in text.as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            8 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..32 => {
                let digits = [byte >> 4, byte & 15].map(|digit| HEXADECIMAL[usize::from(digit)]);
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::Groups;
    use crate::pseudonyms::Pseudonyms;
    use crate::queue::Block;

    fn queue(merges: bool, parts: u64) -> Queue {
        Queue::new(Groups::new("m", "m/1", 1), b"key", Some(10), merges, parts)
    }

    fn taken(queue: &mut Queue) -> Vec<Part> {
        take(&mut [queue], 1).expect("totals of 64 bits").pop().expect("one home")
    }

    fn contents(part: &Part) -> (&str, &str) {
        (std::str::from_utf8(&part.rows).expect("UTF-8"), std::str::from_utf8(&part.partials).expect("UTF-8"))
    }

    #[test]
    fn rows_and_partials_are_written_as_json() {
        let mut queue = queue(true, 8);
        queue.send(Some("ü\"".as_bytes()), -7, b"u", Block { part: None, total: -3, ..Block::single(2, 1, 0, 0) });
        queue.send(Some(b"a"), -7, b"u", Block::single(1, 1, 5, 3));
        queue.send(Some(b"a"), 7, b"u", Block { total: u64::MAX.into(), ..Block::single(1, 0, 0, 0) });
        let digest = String::from_utf8(hexadecimal(&Pseudonyms::new(b"key").of(b"u")).into()).expect("digits");
        let parts = taken(&mut queue);
        let rows = format!("{{\"m/1|ü\\\"\":[[-7,\"{digest}\",2,1,1,-3]]}}");
        assert_eq!(contents(&parts[0]), (&rows[..], "{\"m/1|a\":[[-10,[259,1,5]],[0,[0,1,18446744073709551615]]]}"));
        assert_eq!((parts.len(), taken(&mut queue).len()), (1, 0));
    }

    #[test]
    fn a_total_of_more_than_64_bits_is_refused() {
        for total in [1 << 64, -(1 << 63) - 1] {
            let mut queue = queue(false, 1);
            queue.send(None, 0, b"u", Block { total, ..Block::single(1, 0, 0, 0) });
            assert_eq!(take(&mut [&mut queue], 1), Err(TooLarge));
        }
    }

    #[test]
    fn parts_are_cut_by_how_many_rows_there_are() {
        let mut queue = queue(false, 1);
        for number in 0..2 * ROWS as u64 {
            queue.send(None, 0, b"u", Block::single(number, 0, 0, 0));
        }
        let count = |part: &Part| part.rows.iter().filter(|&&byte| byte == b'[').count() - 1;
        assert_eq!(taken(&mut queue).iter().map(count).collect::<Vec<_>>(), [ROWS, ROWS]);
    }

    #[test]
    fn samples_are_reckoned_with_the_most_cells_that_they_can_fill() {
        let most = |blocks: &[(u32, u8, u64)]| {
            let mut queue = queue(true, 3);
            for &(level, part, samples) in blocks {
                queue.send(None, 0, b"u", Block { samples, ..Block::single(1, level, 0, part) });
            }
            let mut found = 0;
            let Ok(()) = queue.take(|queue, sent| {
                found = most_cells(&sent.partials[0], queue.parts);
                Ok::<(), std::convert::Infallible>(())
            });
            found
        };
        assert_eq!(most(&[(0, 0, 2), (5, 1, 1)]), 3);
        assert_eq!(most(&[(0, 0, 1), (0, 1, 1), (5, 1, 1)]), 3);
        assert_eq!(most(&[(0, 0, 2), (0, 1, 2), (5, 1, 9)]), 6);
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(text("\u{1}\u{1f}\u{7f}\u{8}\n\\ü"), "\"\\u0001\\u001f\u{7f}\\b\\n\\\\ü\"".as_bytes());
    }
}
