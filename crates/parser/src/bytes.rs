//! Values of a tree's fields, read from the bytes that `raw_parse.c` writes.

/// Bytes that are read from their start.
///
/// Reading never fails. At a fault it goes on with zeros and empty values, and remembers the fault.
pub(crate) struct Bytes<'b> {
    rest: &'b [u8],
    is_faulty: bool,
}

impl<'b> Bytes<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes, is_faulty: false }
    }

    /// Whether all bytes were read, without a fault.
    pub(crate) fn is_whole(&self) -> bool {
        self.rest.is_empty() && !self.is_faulty
    }

    /// Remembers a fault and reads nothing more.
    #[cold]
    pub(crate) fn fail(&mut self) {
        (self.rest, self.is_faulty) = (&[], true);
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let Some((array, rest)) = self.rest.split_first_chunk::<N>() else {
            self.fail();
            return [0; N];
        };
        self.rest = rest;
        *array
    }

    #[inline]
    pub(crate) fn tag(&mut self) -> u16 {
        u16::from_ne_bytes(self.array())
    }

    #[inline]
    pub(crate) fn kind(&mut self) -> u8 {
        u8::from_ne_bytes(self.array())
    }

    #[inline]
    pub(crate) fn int(&mut self) -> i32 {
        i32::from_ne_bytes(self.array())
    }

    #[inline]
    pub(crate) fn unsigned(&mut self) -> u32 {
        u32::from_ne_bytes(self.array())
    }

    #[inline]
    pub(crate) fn long(&mut self) -> i64 {
        i64::from_ne_bytes(self.array())
    }

    #[inline]
    pub(crate) fn long_unsigned(&mut self) -> u64 {
        u64::from_ne_bytes(self.array())
    }

    #[inline]
    pub(crate) fn float(&mut self) -> f64 {
        f64::from_ne_bytes(self.array())
    }

    #[inline]
    pub(crate) fn flag(&mut self) -> bool {
        self.array() != [0]
    }

    /// A character as a text; no character is an empty text.
    pub(crate) fn character(&mut self) -> String {
        match self.array() {
            [0] => String::new(),
            [byte] => char::from(byte).to_string(),
        }
    }

    /// The number of members that follow. Each takes at least `width` bytes.
    #[inline]
    pub(crate) fn count(&mut self, width: usize) -> usize {
        let count = self.unsigned() as usize;
        if count > self.rest.len() / width {
            self.fail();
            return 0;
        }
        count
    }

    pub(crate) fn text(&mut self) -> String {
        let length = self.count(1);
        let (text, rest) = self.rest.split_at(length);
        self.rest = rest;
        if let Ok(text) = std::str::from_utf8(text) {
            return text.to_owned();
        }
        self.fail();
        String::new()
    }

    pub(crate) fn set(&mut self) -> Vec<u64> {
        let count = self.count(size_of::<u64>());
        (0..count).map(|_| self.long_unsigned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order() {
        let mut written = 7_u16.to_ne_bytes().to_vec();
        written.extend((-8_i32).to_ne_bytes());
        written.extend(2_u32.to_ne_bytes());
        written.extend("é".as_bytes());
        written.extend([1, b'p', 0]);
        let mut bytes = Bytes::new(&written);
        assert_eq!((bytes.tag(), bytes.int(), bytes.text()), (7, -8, "é".to_owned()));
        assert!(bytes.flag() && !bytes.is_whole());
        assert_eq!((bytes.character(), bytes.character()), ("p".to_owned(), String::new()));
        assert!(bytes.is_whole());
    }

    #[test]
    fn a_fault_ends_the_reading() {
        let short = [3, 0, 0, 0, b'a'];
        let mut bytes = Bytes::new(&short);
        assert_eq!(bytes.text(), "");
        assert_eq!((bytes.flag(), bytes.long(), bytes.set()), (false, 0, Vec::new()));
        assert!(!bytes.is_whole());
        let mut bytes = Bytes::new(&[1, 0, 0, 0, 0xff]);
        assert_eq!((bytes.text(), bytes.is_whole()), (String::new(), false));
    }
}
