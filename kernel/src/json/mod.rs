//! Reads the fields at given paths out of a JSON record in plain form, without building an object of it.
//!
//! This parser accepts a record only if the twin's is certain to read the same fields from it; it returns `None` for any
//! other, and the twin reads that record. So it accepts less than JSON: no escapes in names of fields or in the fields
//! that are read, no deep nesting, no byte order mark.

mod names;
mod scan;

use names::Names;
use scan::MAX_DEPTH;

pub use scan::Scan;

/// A field as it stands in the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Missing,
    Text(&'a [u8]),
    Integer(&'a [u8]),
    Decimal(&'a [u8]),
    True,
    False,
    /// Null, an object, a list, or a text with escapes.
    Other,
}

/// A name within a path, in a tree of all paths.
#[derive(Default)]
struct Node {
    children: Vec<(Box<[u8]>, usize)>, // names that may follow, and their nodes
    slot: Option<usize>,               // where the field goes, if a path ends here
    below: Vec<usize>,                 // slots of this node and of all nodes below it
}

/// The paths of the fields that are read; a dot in a path leads into a nested object.
pub struct Paths {
    nodes: Vec<Node>,
    pub count: usize,
    names: Names,
}

impl Paths {
    pub fn new() -> Self {
        Paths { nodes: vec![Node::default()], count: 0, names: Names::default() }
    }

    /// The slot into which `read` puts the field at a path. A path that is new gets the next one.
    pub fn slot(&mut self, path: &str) -> usize {
        let mut node = 0;
        let mut passed = vec![];
        for name in path.split('.') {
            let found = self.nodes[node].children.iter().find(|(known, _)| **known == *name.as_bytes());
            node = match found {
                Some(&(_, child)) => child,
                None => {
                    self.nodes.push(Node::default());
                    let child = self.nodes.len() - 1;
                    self.nodes[node].children.push((name.as_bytes().into(), child));
                    child
                }
            };
            passed.push(node);
        }
        if let Some(slot) = self.nodes[node].slot {
            return slot;
        }
        self.names = Names::default(); // a name that is remembered may lead to the new path
        let slot = self.count;
        self.count += 1;
        self.nodes[node].slot = Some(slot);
        for node in passed {
            self.nodes[node].below.push(slot);
        }
        slot
    }

    /// Fill `fields`, all of which must be `Missing`, from a record; `None` if the record is not plain.
    pub fn read<'a>(&mut self, raw: &'a [u8], fields: &mut [Field<'a>]) -> Option<()> {
        if !raw.is_ascii() && std::str::from_utf8(raw).is_err() {
            return None;
        }
        self.names.begin();
        let mut reading = Reading { nodes: &self.nodes, names: &mut self.names, scan: Scan { raw, at: 0 }, fields };
        reading.scan.space();
        reading.scan.eat(b'{')?;
        reading.object(0, 1)?;
        reading.scan.space();
        (reading.scan.at == raw.len()).then_some(())
    }
}

/// A record that is being read.
struct Reading<'r, 'a> {
    nodes: &'r [Node],
    names: &'r mut Names,
    scan: Scan<'a>,
    fields: &'r mut [Field<'a>],
}

impl Reading<'_, '_> {
    /// Read an object, from behind its opening brace.
    fn object(&mut self, node: usize, depth: u32) -> Option<()> {
        self.scan.space();
        if self.scan.peek()? == b'}' {
            self.scan.at += 1;
            return Some(());
        }
        loop {
            self.scan.space();
            let child = self.name(node)?;
            self.scan.space();
            match child {
                None => {
                    self.scan.value(depth)?;
                }
                Some(child) => self.wanted(child, depth)?,
            }
            self.scan.space();
            match self.scan.next()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Read a name and its colon. Returns the node to which the name leads, if it is part of a path.
    #[inline(always)]
    fn name(&mut self, node: usize) -> Option<Option<usize>> {
        if let Some(child) = self.names.pass(node, &mut self.scan) {
            return Some(child);
        }
        let begin = self.scan.at;
        self.scan.eat(b'"')?;
        let Field::Text(name) = self.scan.text()? else { return None };
        self.scan.space();
        self.scan.eat(b':')?;
        let child = self.nodes[node].children.iter().find(|(known, _)| **known == *name).map(|&(_, child)| child);
        self.names.keep(node, &self.scan.raw[begin..self.scan.at], child);
        Some(child)
    }

    /// Read the value of a name that is part of a path. If the name occurs twice, the last value counts, as in the twin.
    #[inline(always)]
    fn wanted(&mut self, child: usize, depth: u32) -> Option<()> {
        let nodes = self.nodes;
        let found = &nodes[child];
        for &slot in &found.below {
            self.fields[slot] = Field::Missing;
        }
        let value = if !found.children.is_empty() && self.scan.peek()? == b'{' {
            if depth >= MAX_DEPTH {
                return None;
            }
            self.scan.at += 1;
            self.object(child, depth + 1)?;
            Field::Other
        } else {
            self.scan.value(depth)?
        };
        if let Some(slot) = found.slot {
            self.fields[slot] = value;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(raw: &'a str, paths: &[&str]) -> Option<Vec<Field<'a>>> {
        let mut known = Paths::new();
        for path in paths {
            known.slot(path);
        }
        let mut fields = vec![Field::Missing; known.count];
        known.read(raw.as_bytes(), &mut fields).map(|()| fields)
    }

    #[test]
    fn fields_are_found_wherever_they_stand() {
        let found = read(r#" {"x": [1, {"u": 2}], "u": "a", "v": {"w": -1.5, "z": null}} "#, &["u", "v.w", "q"]);
        assert_eq!(found, Some(vec![Field::Text(b"a"), Field::Decimal(b"-1.5"), Field::Missing]));
    }

    #[test]
    fn of_a_name_that_comes_twice_the_last_counts() {
        let found = read(r#"{"v": {"w": 1}, "u": 1, "v": 3, "u": true}"#, &["u", "v.w"]);
        assert_eq!(found, Some(vec![Field::True, Field::Missing]));
    }

    #[test]
    fn what_is_no_json_or_not_plain_is_left_to_the_twin() {
        for raw in [
            "",
            "{",
            "[]",
            "{\"u\": 01}",
            "{\"u\": 1,}",
            "{\"u\": 1} x",
            "{\"\\u0075\": 1}",
            "{\"u\": \"\\ud800\"}",
            "{\"u\": tru}",
            "{\"u\": 1e}",
            "{\"u\": -}",
            "{\"u\": .5}",
            "{\"u\": \"\u{1}\"}",
            "{\"u\" 1}",
            "{,}",
        ] {
            assert_eq!(read(raw, &["u"]), None, "{raw}");
        }
    }

    #[test]
    fn a_text_ends_at_its_quote_wherever_that_is() {
        for (length, at) in (0..20).flat_map(|length| (0..=length).map(move |at| (length, at))) {
            for (part, is_plain) in
                [(" ", true), ("!#[]\u{7f}é", true), ("\u{1f}", false), ("\"", false), ("\\", false)]
            {
                let text = format!("{}{part}{}", "x".repeat(at), "x".repeat(length - at));
                let raw = format!("{{\"u\": \"{text}\"}}");
                let due = is_plain.then(|| vec![Field::Text(text.as_bytes())]);
                assert_eq!(read(&raw, &["u"]), due, "{raw}");
            }
        }
    }

    #[test]
    fn nesting_has_an_end() {
        let deep = format!("{{\"u\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&deep, &["u"]), None);
    }

    #[test]
    fn no_cut_and_no_byte_breaks_the_reader() {
        let whole = r#"{"a": {"b": [1.5e-3, "x\é", null]}, "u": "é", "t": true}"#.as_bytes();
        let mut paths = Paths::new();
        paths.slot("a.b");
        for at in 0..whole.len() {
            let mut fields = [Field::Missing];
            let _ = paths.read(&whole[..at], &mut fields);
            for byte in 0..=255 {
                let mut changed = whole.to_vec();
                changed[at] = byte;
                let mut fields = [Field::Missing];
                let _ = paths.read(&changed, &mut fields);
            }
        }
    }
}
