//! The first step of reading a date, time or interval: the splitter cuts a text into fields and
//! gives each the name of its shape.
//!
//! Fields are in lower case. White space and meaningless punctuation separate fields and are
//! dropped. The decoders find out the meaning of a field: one shape may be a year, a clock without
//! colons or an offset.

/// The most fields of a text.
const MOST: usize = 25;
/// Bytes of the longest text, with one more for each field.
const ROOM: usize = 256;

/// The shape of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::text) enum Shape {
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
pub(in crate::text) struct Fields {
    bytes: [u8; ROOM],
    /// Shape, start and end of each field.
    places: [(Shape, u16, u16); MOST],
    count: usize,
}

/// Copies the bytes of fields.
struct Copier<'t> {
    text: &'t [u8],
    at: usize,
    bytes: [u8; ROOM],
    filled: usize,
    /// The most bytes that fields and their ends may take.
    room: usize,
}

impl Copier<'_> {
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    /// Copies the next byte.
    fn take(&mut self) -> Option<()> {
        if self.filled + 1 >= self.room {
            return None;
        }
        self.bytes[self.filled] = self.next().to_ascii_lowercase();
        self.filled += 1;
        self.at += 1;
        Some(())
    }

    /// Copies the following bytes that `belongs` accepts.
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> Option<()> {
        while self.at < self.text.len() && belongs(self.next()) {
            self.take()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        self.take_while(|byte| byte.is_ascii_digit())
    }

    /// Copies the rest of a field that begins with a digit.
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

    /// Copies the rest of a field that begins with a letter.
    fn after_letters(&mut self, start: usize, known: impl Fn(&str) -> bool) -> Option<Shape> {
        let next = self.next();
        let more = match next {
            b'-' | b'/' | b'.' => true,
            // "J2451187" is a word and a number; "UTC+3" is one name.
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

    /// Copies the rest of a field that begins with a sign.
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
    /// Splits a text; None when a byte fits no field or the text is too long.
    ///
    /// `room` is the number of bytes that the fields may take, with one more for the end of each.
    /// `known` tells whether a word ends where a digit or plus follows it.
    pub(in crate::text) fn split(text: &str, room: usize, known: impl Fn(&str) -> bool) -> Option<Fields> {
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
            // The end of a field takes one byte of room.
            copier.filled += 1;
        }
        Some(Fields { bytes: copier.bytes, places, count })
    }

    /// Number of fields.
    pub(in crate::text) fn len(&self) -> usize {
        self.count
    }

    /// The shape of a field.
    pub(in crate::text) fn shape(&self, at: usize) -> Shape {
        self.places[at].0
    }

    /// The text of a field.
    pub(in crate::text) fn text(&self, at: usize) -> &str {
        let (_, start, end) = self.places[at];
        std::str::from_utf8(&self.bytes[usize::from(start)..usize::from(end)]).unwrap_or("")
    }
}
