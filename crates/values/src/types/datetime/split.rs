//! The first step of reading a date, time or interval: it splits a text into fields by their shape
//! alone.
//!
//! Fields are in lower case. White space and punctuation without a meaning separate them and are
//! dropped. The decoders find out the meaning of a field: the same shape may be a year, a clock
//! without colons or an offset.

/// Most fields a text may have.
const MOST: usize = 25;
/// Bytes of the longest text, with one more for each field.
const ROOM: usize = 256;

/// The look of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::types) enum Shape {
    /// Digits, perhaps with a decimal point.
    Number,
    /// Digits or letters with separators between them: a date, or the name of a zone.
    Date,
    /// Digits with colons.
    Clock,
    /// A sign and digits: a zone's offset, or a number.
    Signed,
    /// Letters, perhaps with a sign before them.
    Word,
}

/// The fields of a text.
pub(in crate::types) struct Fields {
    bytes: [u8; ROOM],
    /// Shape, begin and end of each.
    places: [(Shape, u16, u16); MOST],
    count: usize,
}

/// Copies what belongs to a field.
struct Copier<'t> {
    text: &'t [u8],
    at: usize,
    bytes: [u8; ROOM],
    filled: usize,
    /// Most bytes that fields may take, copied, and their ends.
    room: usize,
}

impl Copier<'_> {
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Takes the next byte.
    fn take(&mut self) -> Option<()> {
        if self.filled + 1 >= self.room {
            return None;
        }
        self.bytes[self.filled] = self.next().to_ascii_lowercase();
        self.filled += 1;
        self.at += 1;
        Some(())
    }

    /// Takes all bytes of a kind.
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> Option<()> {
        while self.at < self.text.len() && belongs(self.next()) {
            self.take()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        self.take_while(|byte| byte.is_ascii_digit())
    }

    /// Behind the digits of a field that begins with one.
    fn after_digits(&mut self) -> Option<Shape> {
        let separator = self.next();
        match separator {
            b':' => {
                self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))?;
                Some(Shape::Clock)
            }
            b'-' | b'/' | b'.' => {
                self.take()?;
                if !self.next().is_ascii_digit() {
                    self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == separator)?;
                    return Some(Shape::Date);
                }
                self.digits()?;
                if self.next() == separator {
                    self.take_while(|byte| byte.is_ascii_digit() || byte == separator)?;
                    return Some(Shape::Date);
                }
                Some(if separator == b'.' { Shape::Number } else { Shape::Date })
            }
            _ => Some(Shape::Number),
        }
    }

    /// Behind the letters of a field that begins with one.
    fn after_letters(&mut self, start: usize, known: impl Fn(&str) -> bool) -> Option<Shape> {
        let next = self.next();
        let more = match next {
            b'-' | b'/' | b'.' => true,
            // "J2451187" is a word and a number, "UTC+3" is one name.
            _ if next == b'+' || next.is_ascii_digit() => {
                !known(std::str::from_utf8(&self.bytes[start..self.filled]).ok()?)
            }
            _ => false,
        };
        if !more {
            return Some(Shape::Word);
        }
        self.take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
        })?;
        Some(Shape::Date)
    }

    /// Behind a sign.
    fn after_sign(&mut self) -> Option<Shape> {
        while is_space(self.next()) {
            self.at += 1;
        }
        if self.next().is_ascii_digit() {
            self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-'))?;
            Some(Shape::Signed)
        } else if self.next().is_ascii_alphabetic() {
            self.take_while(|byte| byte.is_ascii_alphabetic())?;
            Some(Shape::Word)
        } else {
            None
        }
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

impl Fields {
    /// The fields of a text; None where a byte fits nowhere or the text is too long.
    ///
    /// `room`: how many bytes the fields may take, an end for each included. `known`: whether a
    /// word stands for itself when a digit or plus follows it.
    pub(in crate::types) fn split(text: &str, room: usize, known: impl Fn(&str) -> bool) -> Option<Fields> {
        let mut copier =
            Copier { text: text.as_bytes(), at: 0, bytes: [0; ROOM], filled: 0, room: room.min(ROOM) };
        let mut places = [(Shape::Number, 0, 0); MOST];
        let mut count = 0;
        while copier.at < copier.text.len() {
            let first = copier.next();
            if is_space(first) {
                copier.at += 1;
                continue;
            }
            let start = copier.filled;
            let shape = if first.is_ascii_digit() {
                copier.digits()?;
                copier.after_digits()?
            } else if first == b'.' {
                copier.take()?;
                copier.digits()?;
                Shape::Number
            } else if first.is_ascii_alphabetic() {
                copier.take_while(|byte| byte.is_ascii_alphabetic())?;
                copier.after_letters(start, &known)?
            } else if matches!(first, b'+' | b'-') {
                copier.take()?;
                copier.after_sign()?
            } else if first.is_ascii_punctuation() {
                copier.at += 1;
                continue;
            } else {
                return None;
            };
            if count == MOST {
                return None;
            }
            places[count] = (shape, start as u16, copier.filled as u16);
            count += 1;
            // The end of a field takes a byte's room.
            copier.filled += 1;
        }
        Some(Fields { bytes: copier.bytes, places, count })
    }

    /// Their number.
    pub(in crate::types) fn len(&self) -> usize {
        self.count
    }

    /// A field's shape.
    pub(in crate::types) fn shape(&self, at: usize) -> Shape {
        self.places[at].0
    }

    /// A field's text.
    pub(in crate::types) fn text(&self, at: usize) -> &str {
        let (_, start, end) = self.places[at];
        std::str::from_utf8(&self.bytes[usize::from(start)..usize::from(end)]).unwrap_or("")
    }
}
