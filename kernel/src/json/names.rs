//! The names of records that were read before. A record of the same shape is read without a search for its names.
//!
//! Where a name leads depends on the object that it is in and on its bytes, and on nothing else. So a remembered name
//! that is in the same object and has the same bytes leads to the same node, whatever record it comes from: what is
//! remembered saves time, and decides nothing.

use super::scan::Scan;

/// The number of names of a record that are remembered.
const MOST_NAMES: usize = 64;
/// The length of a remembered name of 64 bytes, with its quotes and colon.
const MOST_BYTES: usize = 64 + 3;

/// A name as it stood in a record, from its first quote to its colon.
struct Name {
    node: usize, // of the object that it is in
    text: Vec<u8>,
    child: Option<usize>, // the node to which it leads
    is_missed: bool,      // whether another name stood in its place the last time
}

/// The names of a record in their order, and the number of the next one.
#[derive(Default)]
pub struct Names {
    known: Vec<Name>,
    number: usize,
}

impl Names {
    /// Begin a record.
    pub fn begin(&mut self) {
        self.number = 0;
    }

    /// Pass over the name at hand and its colon, if they are the remembered ones. Returns where the name leads.
    #[inline(always)]
    pub fn pass(&mut self, node: usize, scan: &mut Scan) -> Option<Option<usize>> {
        let known = self.known.get_mut(self.number)?;
        if known.node != node || !scan.raw[scan.at..].starts_with(&known.text) {
            return None;
        }
        scan.at += known.text.len();
        known.is_missed = false;
        self.number += 1;
        Some(known.child)
    }

    /// Remember a name that was not passed over. It replaces the remembered one if that was missed twice in a row, so
    /// that records of two shapes in turn do not replace one another. A name that is too long has no number.
    pub fn keep(&mut self, node: usize, text: &[u8], child: Option<usize>) {
        if self.number == MOST_NAMES || text.len() > MOST_BYTES {
            return;
        }
        if self.number == self.known.len() {
            self.known.push(Name { node, text: text.to_vec(), child, is_missed: false });
        } else {
            let known = &mut self.known[self.number];
            if known.is_missed {
                (known.node, known.child) = (node, child);
                known.text.clear();
                known.text.extend_from_slice(text);
            }
            known.is_missed = !known.is_missed;
        }
        self.number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Field, Paths};

    fn paths(of: &[&str]) -> Paths {
        let mut paths = Paths::new();
        for path in of {
            paths.slot(path);
        }
        paths
    }

    fn read<'a>(paths: &mut Paths, raw: &'a str) -> Vec<Field<'a>> {
        let mut fields = vec![Field::Missing; paths.count];
        paths.read(raw.as_bytes(), &mut fields).expect("it is plain");
        fields
    }

    fn known(paths: &Paths) -> Vec<&str> {
        paths.names.known.iter().map(|name| std::str::from_utf8(&name.text).expect("names are UTF-8")).collect()
    }

    #[test]
    fn a_name_that_is_remembered_is_not_searched_for() {
        let mut paths = paths(&["u"]);
        assert_eq!(read(&mut paths, r#"{"a":1,"u":2}"#), [Field::Integer(b"2")]);
        // only what is remembered leads elsewhere: so it is what is used, also in a third record
        paths.names.known[1].child = None;
        for _ in 0..2 {
            assert_eq!(read(&mut paths, r#"{"a":1,"u":2}"#), [Field::Missing]);
        }
        assert_eq!(read(&mut paths, r#"{"a":1,"u" :2}"#), [Field::Integer(b"2")]);
    }

    #[test]
    fn names_are_replaced_if_they_are_missed_twice_in_a_row() {
        let mut paths = paths(&["u"]);
        for (raw, due) in [
            (r#"{"a":1,"u":2}"#, [r#""a":"#, r#""u":"#]),
            (r#"{"u":1,"b":2}"#, [r#""a":"#, r#""u":"#]),
            (r#"{"a":1,"b":2}"#, [r#""a":"#, r#""b":"#]),
            (r#"{"u":1,"b":2}"#, [r#""a":"#, r#""b":"#]),
            (r#"{"b":1}"#, [r#""b":"#, r#""b":"#]),
        ] {
            read(&mut paths, raw);
            assert_eq!(known(&paths), due, "{raw}");
        }
    }

    #[test]
    fn there_are_at_most_64_names_of_at_most_64_bytes() {
        let [longest, longer] = [64, 65].map(|length| "n".repeat(length));
        let mut paths = paths(&["u"]);
        let raw = format!(r#"{{"{longer}":1,"{longest}":2,"{longest}" :3,"u":4}}"#);
        assert_eq!(read(&mut paths, &raw), [Field::Integer(b"4")]);
        assert_eq!(known(&paths), [format!("\"{longest}\":"), "\"u\":".into()]);
        let many: String = (0..100).map(|number| format!(r#""{number}":0,"#)).collect();
        let raw = format!(r#"{{{many}"u":{{}}}}"#);
        for _ in 0..3 {
            assert_eq!(read(&mut paths, &raw), [Field::Other]);
        }
        assert_eq!(known(&paths).len(), 64);
        assert_eq!(known(&paths)[63], r#""63":"#);
    }

    #[test]
    fn a_new_path_forgets_all_names() {
        let mut paths = paths(&["u"]);
        read(&mut paths, r#"{"u":1,"x":2}"#);
        paths.slot("x");
        assert_eq!(read(&mut paths, r#"{"u":1,"x":2}"#), [Field::Integer(b"1"), Field::Integer(b"2")]);
    }
}
