//! Records of JSON: what the kernel takes, `serde_json` reads alike; and it takes all that is plain.

use serde_json::{Map, Value};

use crate::json::{Field, Paths};

const PATHS: [&str; 6] = ["u", "x", "t", "g", "v.w", "v"];
const MOST_NESTED: usize = 16;
const PRIVATE: &str = "$serde_json::private"; // a name that means something to serde_json alone

pub fn json(raw: &[u8]) {
    if raw.windows(PRIVATE.len()).any(|part| part == PRIVATE.as_bytes()) {
        return;
    }
    let mut paths = Paths::new();
    let slots = PATHS.map(|path| paths.slot(path));
    let mut fields = vec![Field::Missing; paths.count];
    let is_taken = paths.read(raw, &mut fields).is_some();
    let due = serde_json::from_slice::<Map<String, Value>>(raw);
    match &due {
        Ok(object) if is_taken => {
            for (path, slot) in PATHS.into_iter().zip(slots) {
                compare(look(object, path), fields[slot]);
            }
        }
        _ if raw.contains(&b'\\') => assert!(!is_taken || due.is_ok()),
        _ => assert_eq!(is_taken, due.is_ok() && nesting(raw) <= MOST_NESTED),
    }
    // no cut of an object is one
    if is_taken {
        let end = raw.iter().rposition(|&byte| byte == b'}').expect("the brace at the end");
        let mut fields = vec![Field::Missing; paths.count];
        assert!(paths.read(&raw[..end], &mut fields).is_none());
        assert!(paths.read(&raw[..end / 2], &mut fields).is_none());
    }
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
