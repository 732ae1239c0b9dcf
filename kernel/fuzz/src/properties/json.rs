//! Records of JSON: what the kernel takes, `serde_json` reads alike; it takes all that is plain; and records that a
//! reader read before change nothing.

use serde_json::{Map, Value};

use crate::json::{Field, Paths};

const PATHS: [&str; 6] = ["u", "x", "t", "g", "v.w", "v"];
const MOST_NESTED: usize = 16;
const PRIVATE: &str = "$serde_json::private"; // a name that means something to serde_json alone
const SEPARATOR: u8 = 0x1e; // between records, as in RFC 7464; no record that is taken has it

pub fn json(raw: &[u8]) {
    let records = raw.split(|&byte| byte == SEPARATOR);
    let records: Vec<_> = records.map(|record| (record, read(&mut paths(), record))).collect();
    for (record, fresh) in &records {
        alone(record, fresh.as_deref());
    }
    // one reader of all records, which come twice, after a part of themselves, and in turn
    let mut paths = paths();
    for (record, fresh) in &records {
        assert_eq!(read(&mut paths, record), *fresh);
        assert_eq!(read(&mut paths, record), *fresh);
        if fresh.is_some() {
            cut(record, &mut paths);
        }
        assert_eq!(read(&mut paths, record), *fresh);
    }
    for (record, fresh) in records.iter().chain(&records) {
        assert_eq!(read(&mut paths, record), *fresh);
    }
}

fn paths() -> Paths {
    let mut paths = Paths::new();
    for (number, path) in PATHS.into_iter().enumerate() {
        assert_eq!(paths.slot(path), number);
    }
    paths
}

fn read<'a>(paths: &mut Paths, raw: &'a [u8]) -> Option<Vec<Field<'a>>> {
    let mut fields = vec![Field::Missing; paths.count];
    paths.read(raw, &mut fields).map(|()| fields)
}

/// A fresh reader takes what `serde_json` reads, and reads the same.
fn alone(raw: &[u8], taken: Option<&[Field]>) {
    if raw.windows(PRIVATE.len()).any(|part| part == PRIVATE.as_bytes()) {
        return;
    }
    let due = serde_json::from_slice::<Map<String, Value>>(raw);
    match (&due, taken) {
        (Ok(object), Some(fields)) => {
            for (path, &field) in PATHS.into_iter().zip(fields) {
                compare(look(object, path), field);
            }
        }
        _ if raw.contains(&b'\\') => assert!(taken.is_none() || due.is_ok()),
        _ => assert_eq!(taken.is_some(), due.is_ok() && nesting(raw) <= MOST_NESTED),
    }
}

/// No cut of an object is one, whatever the reader read before.
fn cut(raw: &[u8], paths: &mut Paths) {
    let end = raw.iter().rposition(|&byte| byte == b'}').expect("the brace at the end");
    assert!(read(paths, &raw[..end]).is_none());
    assert!(read(paths, &raw[..end / 2]).is_none());
}

fn look<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => object.get(path),
        Some((name, rest)) => look(object.get(name)?.as_object()?, rest),
    }
}

fn compare(due: Option<&Value>, found: Field) {
    match (due, found) {
        (None, Field::Missing) | (Some(Value::Bool(true)), Field::True) | (Some(Value::Bool(false)), Field::False) => {}
        (Some(Value::Null | Value::Array(_) | Value::Object(_) | Value::String(_)), Field::Other) => {}
        (Some(Value::String(due)), Field::Text(text)) => assert_eq!(due.as_bytes(), text),
        (Some(Value::Number(due)), Field::Integer(text)) => {
            assert_eq!(due.as_str().as_bytes(), text);
            assert!(!text.iter().any(|byte| b".eE".contains(byte)));
        }
        (Some(Value::Number(due)), Field::Decimal(text)) => {
            assert_eq!(due.as_str(), with_sign(text));
            assert!(text.iter().any(|byte| b".eE".contains(byte)));
        }
        (due, found) => panic!("{found:?} is not {due:?}"),
    }
}

/// A number whose exponent is written as `serde_json` keeps it: `1E5` is `1e+5`.
fn with_sign(text: &[u8]) -> String {
    let text = std::str::from_utf8(text).expect("a number is ASCII").replace('E', "e");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with(['+', '-']) => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// How deeply objects and lists are nested where no text has an escape.
fn nesting(raw: &[u8]) -> usize {
    let (mut depth, mut most, mut is_text) = (0_usize, 0, false);
    for byte in raw {
        match byte {
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}
