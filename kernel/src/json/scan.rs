//! Bytes of JSON from left to right: texts, numbers, words, and objects or lists that nobody reads.

use super::Field;
use crate::words::{below, equal, unmarked};

/// How deeply objects and lists may be nested; the twin takes 200.
pub const MAX_DEPTH: u32 = 16;

/// Bytes that are read from left to right.
pub struct Scan<'a> {
    pub raw: &'a [u8],
    pub at: usize,
}

impl<'a> Scan<'a> {
    #[inline(always)]
    pub fn peek(&self) -> Option<u8> {
        self.raw.get(self.at).copied()
    }

    #[inline(always)]
    pub fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    #[inline(always)]
    pub fn eat(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    #[inline(always)]
    pub fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Read a text, from behind its opening quote; `Other` if it has escapes.
    #[inline(always)]
    pub fn text(&mut self) -> Option<Field<'a>> {
        let begin = self.at;
        let mut plain = true;
        loop {
            self.at +=
                unmarked(&self.raw[self.at..], |word| equal(word, b'"') | equal(word, b'\\') | below(word, b' '));
            match self.next()? {
                b'"' => break,
                b'\\' => {
                    plain = false;
                    self.escape()?;
                }
                0..=0x1f => return None,
                _ => {}
            }
        }
        Some(if plain { Field::Text(&self.raw[begin..self.at - 1]) } else { Field::Other })
    }

    /// Read an escape, from behind its backslash. Surrogates are left to the twin: parsers disagree about unpaired ones.
    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let digits = self.raw.get(self.at..self.at + 4)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                let is_surrogate = digits[0] | 0x20 == b'd' && digits[1] >= b'8';
                self.at += 4;
                (!is_surrogate).then_some(())
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn digits(&mut self) -> Option<()> {
        let begin = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > begin).then_some(())
    }

    #[inline(always)]
    fn number(&mut self) -> Option<Field<'a>> {
        let begin = self.at;
        if self.peek()? == b'-' {
            self.at += 1;
        }
        match self.next()? {
            b'0' => {}
            b'1'..=b'9' => {
                while let Some(b'0'..=b'9') = self.peek() {
                    self.at += 1;
                }
            }
            _ => return None,
        }
        let whole = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.raw[begin..self.at];
        Some(if self.at == whole { Field::Integer(text) } else { Field::Decimal(text) })
    }

    fn word(&mut self, word: &[u8], meaning: Field<'a>) -> Option<Field<'a>> {
        if !self.raw[self.at..].starts_with(word) {
            return None;
        }
        self.at += word.len();
        Some(meaning)
    }

    #[inline(always)]
    pub fn value(&mut self, depth: u32) -> Option<Field<'a>> {
        match self.peek()? {
            b'"' => {
                self.at += 1;
                self.text()
            }
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word(b"true", Field::True),
            b'f' => self.word(b"false", Field::False),
            b'n' => self.word(b"null", Field::Other),
            b'{' | b'[' => self.skip(depth),
            _ => None,
        }
    }

    /// Pass over an object or a list that no path leads into.
    #[inline(never)]
    fn skip(&mut self, depth: u32) -> Option<Field<'a>> {
        if depth >= MAX_DEPTH {
            return None;
        }
        let is_object = self.next()? == b'{';
        let end = if is_object { b'}' } else { b']' };
        self.space();
        if self.peek()? == end {
            self.at += 1;
            return Some(Field::Other);
        }
        loop {
            self.space();
            if is_object {
                self.eat(b'"')?;
                self.text()?;
                self.space();
                self.eat(b':')?;
                self.space();
            }
            self.value(depth + 1)?;
            self.space();
            match self.next()? {
                b',' => {}
                byte if byte == end => return Some(Field::Other),
                _ => return None,
            }
        }
    }
}
