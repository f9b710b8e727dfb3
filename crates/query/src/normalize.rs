//! Literals lifted out of a statement's text, so that statements that differ only in them share one
//! plan.
//!
//! One pass over the bytes finds the literals and hashes the bytes between them. It allocates
//! nothing once the reusable list has grown. What must hold:
//!
//! 1. Two texts whose gaps (the bytes between literals) and literal classes are equal have the same
//!    tokens apart from the literals' values. So a [`Template`] made from one text serves the
//!    other; it compares the gaps byte by byte.
//! 2. A literal becomes a parameter only under two conditions. The binder met exactly this literal
//!    as a constant of an expression, and nothing depended on its value
//!    ([`LiteralUse::Parameter`]). Any other literal is pinned: its text must be the same.
//!
//! Lifted are decimal numbers, with the sign if it can only be a sign, and strings: plain,
//! dollar-quoted, and E'' without characters by number. Comments, quoted identifiers, parameters
//! and other kinds of constants stay in the gaps.

use std::borrow::Cow;

use values::types::Type;

#[cfg(test)]
mod tests;

/// A text with more literals gets no template; it is a bulk insert.
const MAX_LITERALS: usize = 4096;

/// Start and multiplier of the hash: an odd number without pattern (2^64 over the golden ratio).
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The kind of a literal. Numbers of different types need different plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LiteralClass {
    /// An integer in the range of integer.
    Int4 = 1,
    /// An integer in the range of bigint but not integer.
    Int8,
    /// Any other number: numeric.
    Decimal,
    /// '...'
    String,
    /// E'...'
    Escape,
    /// $tag$...$tag$
    Dollar,
}

/// One literal of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal {
    /// Byte offset of its first byte in the text, including a lifted sign.
    pub start: u32,
    /// Byte offset after its last byte.
    pub end: u32,
    /// Its kind.
    pub class: LiteralClass,
    /// The value of an integer; 0 for other kinds.
    pub number: i64,
}

impl Literal {
    /// Its bytes in the text it was read from.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// The string it stands for; for a number, its digits and sign. The result is borrowed unless
    /// there is something to unescape. None for a wrong escape, which the parser reports.
    #[must_use]
    pub fn value<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        let raw = self.text(text);
        match self.class {
            LiteralClass::Int4 | LiteralClass::Int8 | LiteralClass::Decimal => {
                if raw.starts_with('-') {
                    return Some(Cow::Owned(raw.replace(' ', "")));
                }
                Some(Cow::Borrowed(raw))
            }
            LiteralClass::String => {
                let inner = raw.get(1..raw.len().checked_sub(1)?)?;
                Some(if inner.contains('\'') {
                    Cow::Owned(inner.replace("''", "'"))
                } else {
                    Cow::Borrowed(inner)
                })
            }
            LiteralClass::Escape => unescape(raw.get(2..raw.len().checked_sub(1)?)?),
            LiteralClass::Dollar => {
                let tag = raw.get(1..)?.find('$')? + 2;
                Some(Cow::Borrowed(raw.get(tag..raw.len().checked_sub(tag)?)?))
            }
        }
    }
}

/// Whether an escape of an E'' string names a character by its number.
fn needs_parser(escape: u8) -> bool {
    matches!(escape, b'0'..=b'7' | b'x' | b'u' | b'U')
}

/// The content of an E'' string with its escapes resolved.
fn unescape(inner: &str) -> Option<Cow<'_, str>> {
    if !inner.contains(['\\', '\'']) {
        return Some(Cow::Borrowed(inner));
    }
    let mut out: Vec<u8> = Vec::with_capacity(inner.len());
    let mut rest = inner.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'\'' => {
                out.push(b'\'');
                rest = rest.get(1..)?;
            }
            b'\\' => {
                let (&escape, tail) = rest.split_first()?;
                rest = tail;
                match escape {
                    b'b' => out.push(8),
                    b'f' => out.push(12),
                    b'n' => out.push(b'\n'),
                    b'r' => out.push(b'\r'),
                    b't' => out.push(b'\t'),
                    b'v' => out.push(11),
                    // These may yield bytes that are no text, or depend on the next bytes. The scan
                    // leaves them to the parser.
                    escape if needs_parser(escape) => return None,
                    other => out.push(other),
                }
            }
            other => out.push(other),
        }
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

/// The literals of one text and the hash of the rest. Statements reuse it.
#[derive(Debug, Default)]
pub struct Normalized {
    /// The literals in the order of the text.
    pub literals: Vec<Literal>,
    /// Hash of the gaps and the literals' classes.
    pub hash: u64,
    /// Whether a token follows a semicolon, so that there are several statements.
    pub several: bool,
}

/// The kind of the last token, as far as the meaning of a minus depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// An operator, an opening bracket or a comma. A minus after it is a sign.
    Open,
    /// Anything else.
    Other,
}

const SPACE: u8 = 1;
const WORD: u8 = 2;
const DIGIT: u8 = 3;
const OPEN: u8 = 4;
const OTHER: u8 = 0;

/// Byte classes. The few bytes with a rule of their own are OTHER or OPEN here; code matches them
/// by value.
static CLASS: [u8; 256] = {
    let mut table = [OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 11 | 12 => SPACE,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128.. => WORD,
            b'0'..=b'9' => DIGIT,
            b'(' | b',' | b'[' | b'=' | b'<' | b'>' | b'+' | b'*' | b'%' | b'|' | b'^' => OPEN,
            _ => OTHER,
        };
        byte += 1;
    }
    table
};

fn class(byte: u8) -> u8 {
    CLASS[byte as usize]
}

impl Normalized {
    /// Reads a text. Returns false if it gets no template: it is malformed, too long, or has too
    /// many literals.
    pub fn read(&mut self, text: &str) -> bool {
        self.literals.clear();
        self.hash = SEED;
        self.several = false;
        if u32::try_from(text.len()).is_err() {
            return false;
        }
        let done =
            Scan { bytes: text.as_bytes(), position: 0, last: Last::Open, ended: false, out: self }.run();
        done && self.literals.len() <= MAX_LITERALS
    }
}

/// Calls `visit` with the range of every token, comments included. Returns false if the text ends
/// inside a token.
pub(crate) fn for_each_token(text: &str, mut visit: impl FnMut(usize, usize)) -> bool {
    let mut unused = Normalized::default();
    let mut scan =
        Scan { bytes: text.as_bytes(), position: 0, last: Last::Other, ended: false, out: &mut unused };
    while let Some(&byte) = scan.bytes.get(scan.position) {
        if class(byte) == SPACE {
            scan.position += 1;
            continue;
        }
        let start = scan.position;
        // After `Other`, a minus is never part of a number.
        scan.last = Last::Other;
        if scan.token(byte).is_err() {
            return false;
        }
        visit(start, scan.position);
    }
    true
}

struct Scan<'a> {
    bytes: &'a [u8],
    position: usize,
    last: Last,
    ended: bool,
    out: &'a mut Normalized,
}

impl Scan<'_> {
    fn run(mut self) -> bool {
        let mut gap = 0;
        while self.position < self.bytes.len() {
            let start = self.position;
            let byte = self.bytes[start];
            if class(byte) == SPACE {
                self.position += 1;
                continue;
            }
            let literal = match self.token(byte) {
                Ok(literal) => literal,
                Err(Unterminated) => return false,
            };
            if self.position == start {
                return false;
            }
            if byte != b';' && self.ended && !self.is_comment(start) {
                self.out.several = true;
            }
            if let Some((class, number)) = literal {
                self.hash_gap(gap, start, class as u8);
                self.out.literals.push(Literal {
                    start: start as u32,
                    end: self.position as u32,
                    class,
                    number,
                });
                if self.out.literals.len() > MAX_LITERALS {
                    return false;
                }
                gap = self.position;
            }
        }
        self.hash_gap(gap, self.bytes.len(), 0);
        true
    }

    fn is_comment(&self, start: usize) -> bool {
        matches!(self.bytes.get(start..start + 2), Some(b"--" | b"/*"))
    }

    /// Skips one token; Some for a literal to lift.
    #[inline]
    fn token(&mut self, byte: u8) -> Result<Option<(LiteralClass, i64)>, Unterminated> {
        let start = self.position;
        let next = self.bytes.get(start + 1).copied().unwrap_or(0);
        match (class(byte), byte) {
            (WORD, _) => return self.word(start),
            (DIGIT, _) => return Ok(self.number(start, start)),
            (_, b'\'') => {
                self.quoted(start, b'\'', false)?;
                return Ok(self.literal(LiteralClass::String));
            }
            (_, b'"') => {
                self.quoted(start, b'"', false)?;
                self.last = Last::Other;
            }
            (_, b'.') if class(next) == DIGIT && self.last == Last::Open => {
                return Ok(self.number(start, start));
            }
            (_, b'$') => return self.dollar(start),
            (_, b'-') if next == b'-' => {
                let line = self.bytes[start..].iter().position(|&b| b == b'\n' || b == b'\r');
                self.position = line.map_or(self.bytes.len(), |line| start + line);
            }
            (_, b'/') if next == b'*' => self.comment(start)?,
            (_, b'-') => return Ok(self.minus(start)),
            (_, b';') => {
                self.position += 1;
                self.ended = true;
                self.last = Last::Open;
            }
            (OPEN, _) | (_, b'/') => {
                self.position += 1;
                self.last = Last::Open;
            }
            _ => {
                self.position += 1;
                self.last = Last::Other;
            }
        }
        Ok(None)
    }

    fn literal(&mut self, class: LiteralClass) -> Option<(LiteralClass, i64)> {
        self.last = Last::Other;
        Some((class, 0))
    }

    /// Skips a keyword or name, or reads the prefix of a string.
    #[inline]
    fn word(&mut self, start: usize) -> Result<Option<(LiteralClass, i64)>, Unterminated> {
        let mut end = start + 1;
        while end < self.bytes.len()
            && (matches!(class(self.bytes[end]), WORD | DIGIT) || self.bytes[end] == b'$')
        {
            end += 1;
        }
        self.position = end;
        self.last = Last::Other;
        if end - start == 1 {
            let prefix = self.bytes[start] | 0x20;
            match self.bytes.get(end) {
                Some(b'\'') if prefix == b'e' => {
                    let simple = self.quoted(end, b'\'', true)?;
                    return Ok(simple.then_some((LiteralClass::Escape, 0)));
                }
                Some(b'\'') if matches!(prefix, b'b' | b'x' | b'n') => {
                    self.quoted(end, b'\'', false)?;
                }
                Some(b'&') if prefix == b'u' => {
                    if let Some(&quote @ (b'\'' | b'"')) = self.bytes.get(end + 1) {
                        self.quoted(end + 1, quote, false)?;
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Skips a quoted token whose opening quote is at `open`. Returns false if it has an escape
    /// that only the parser reads.
    fn quoted(&mut self, open: usize, quote: u8, escapes: bool) -> Result<bool, Unterminated> {
        let mut at = open + 1;
        let mut simple = true;
        loop {
            match self.bytes.get(at) {
                None => return Err(Unterminated),
                Some(b'\\') if escapes => {
                    simple &= !self.bytes.get(at + 1).is_some_and(|escape| needs_parser(*escape));
                    at += 2;
                }
                Some(&byte) if byte == quote => {
                    if self.bytes.get(at + 1) != Some(&quote) {
                        self.position = at + 1;
                        return Ok(simple);
                    }
                    at += 2;
                }
                Some(_) => at += 1,
            }
        }
    }

    /// Skips a parameter, which stays in the gap, or a dollar-quoted string.
    fn dollar(&mut self, start: usize) -> Result<Option<(LiteralClass, i64)>, Unterminated> {
        let mut end = start + 1;
        self.last = Last::Other;
        if self.bytes.get(end).is_some_and(u8::is_ascii_digit) {
            while self.bytes.get(end).is_some_and(u8::is_ascii_digit) {
                end += 1;
            }
            self.position = end;
            return Ok(None);
        }
        while self.bytes.get(end).is_some_and(|&b| matches!(class(b), WORD | DIGIT)) {
            end += 1;
        }
        if self.bytes.get(end) != Some(&b'$') {
            self.position = start + 1;
            return Ok(None);
        }
        let tag = &self.bytes[start..=end];
        let close =
            self.bytes[end + 1..].windows(tag.len()).position(|window| window == tag).ok_or(Unterminated)?;
        self.position = end + 1 + close + tag.len();
        Ok(self.literal(LiteralClass::Dollar))
    }

    fn comment(&mut self, start: usize) -> Result<(), Unterminated> {
        let mut depth = 1;
        let mut at = start + 2;
        while depth > 0 {
            match self.bytes.get(at..at + 2) {
                Some(b"/*") => (depth, at) = (depth + 1, at + 2),
                Some(b"*/") => (depth, at) = (depth - 1, at + 2),
                Some(_) => at += 1,
                None => return Err(Unterminated),
            }
        }
        self.position = at;
        Ok(())
    }

    /// A minus: a sign that belongs to the number after it, or an operator.
    ///
    /// It is a sign if it follows an operator, a bracket or a comma and does not touch it (`@-5`
    /// has the operator `@-`). A cast or subscript binds tighter than the sign, so before a number
    /// with one the minus is an operator.
    fn minus(&mut self, start: usize) -> Option<(LiteralClass, i64)> {
        let before = start.checked_sub(1).map_or(b' ', |at| self.bytes[at]);
        if self.last == Last::Open && (class(before) == SPACE || matches!(before, b'(' | b',' | b'[')) {
            let mut digits = start + 1;
            while self.bytes.get(digits).is_some_and(|&b| b == b' ') {
                digits += 1;
            }
            let dot = self.bytes.get(digits) == Some(&b'.');
            if self.bytes.get(digits + usize::from(dot)).is_some_and(u8::is_ascii_digit)
                && let Some(literal) = self.number(start, digits)
            {
                let after = self.bytes[self.position..].iter().find(|&&b| class(b) != SPACE);
                if !matches!(after, Some(b':' | b'[' | b'.')) {
                    return Some(literal);
                }
            }
        }
        self.position = start + 1;
        self.last = Last::Open;
        None
    }

    /// A number with its first digit at `digits` and its sign, if any, at `start`. None for the
    /// forms that are not lifted.
    #[inline]
    fn number(&mut self, start: usize, digits: usize) -> Option<(LiteralClass, i64)> {
        let bytes = self.bytes;
        let mut at = digits;
        let mut value: i64 = 0;
        let mut exact = true;
        while let Some(&byte @ b'0'..=b'9') = bytes.get(at) {
            // Accumulated as a negative number, since that side has one more value.
            let next = value.checked_mul(10).and_then(|v| v.checked_sub(i64::from(byte - b'0')));
            exact &= next.is_some();
            value = next.unwrap_or(0);
            at += 1;
        }
        let mut whole = true;
        if bytes.get(at) == Some(&b'.') && bytes.get(at + 1) != Some(&b'.') {
            whole = false;
            at += 1;
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
                whole = false;
                at += 1 + sign;
                while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                    at += 1;
                }
            }
        }
        self.last = Last::Other;
        if bytes.get(at).is_some_and(|&b| class(b) == WORD) {
            // 0x1F, 1_000, or text that the parser will refuse: the whole word stays in the gap.
            while bytes.get(at).is_some_and(|&b| matches!(class(b), WORD | DIGIT)) {
                at += 1;
            }
            self.position = at;
            return None;
        }
        self.position = at;
        let number = if start < digits { Some(value) } else { value.checked_neg() };
        Some(match number.filter(|_| whole && exact) {
            Some(number) if i32::try_from(number).is_ok() => (LiteralClass::Int4, number),
            Some(number) => (LiteralClass::Int8, number),
            None => (LiteralClass::Decimal, 0),
        })
    }

    /// Mixes a gap's bytes and its end into the hash, eight bytes a step.
    #[inline]
    fn hash_gap(&mut self, from: usize, to: usize, end: u8) {
        let mut hash = self.out.hash;
        let mut chunks = self.bytes[from..to].chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            hash = mix(hash, u64::from_le_bytes(word));
        }
        let mut tail = [0; 8];
        let rest = chunks.remainder();
        tail[..rest.len()].copy_from_slice(rest);
        tail[7] = end;
        self.out.hash = mix(hash, u64::from_le_bytes(tail));
    }
}

/// A quote or comment is not closed.
struct Unterminated;

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(SEED);
    (product as u64) ^ ((product >> 64) as u64).rotate_left(23)
}

/// The use that a plan makes of one literal of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralUse {
    /// The literal is parameter `index` (from 0, after the declared ones) of this type. The type's
    /// input function reads its value.
    Parameter {
        /// The parameter.
        index: u32,
        /// Its type.
        type_: Type,
    },
    /// The plan is valid only for this literal text.
    Pinned,
}

/// A text with a stored plan, and the condition under which another text may use the plan.
#[derive(Debug)]
pub struct Template {
    text: Box<str>,
    literals: Box<[Literal]>,
    /// The use of each literal.
    pub uses: Box<[LiteralUse]>,
}

impl Template {
    /// The template of a text, with the binder's use of its literals.
    #[must_use]
    pub fn new(text: &str, literals: &[Literal], uses: Vec<LiteralUse>) -> Template {
        Template { text: text.into(), literals: literals.into(), uses: uses.into() }
    }

    /// Whether the plan serves this text: its gaps and classes are equal, and pinned literals have
    /// equal text.
    #[must_use]
    pub fn serves(&self, text: &str, literals: &[Literal]) -> bool {
        if self.literals.len() != literals.len() {
            return false;
        }
        let (mut gap, mut other_gap) = (0, 0);
        let (own, other) = (self.text.as_bytes(), text.as_bytes());
        for (index, (literal, other_literal)) in self.literals.iter().zip(literals).enumerate() {
            let same = literal.class == other_literal.class
                && own[gap..literal.start as usize] == other[other_gap..other_literal.start as usize]
                && match self.uses.get(index) {
                    Some(LiteralUse::Parameter { .. }) => true,
                    _ => literal.text(&self.text) == other_literal.text(text),
                };
            if !same {
                return false;
            }
            (gap, other_gap) = (literal.end as usize, other_literal.end as usize);
        }
        own[gap..] == other[other_gap..]
    }
}
