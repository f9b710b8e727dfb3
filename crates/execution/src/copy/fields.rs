//! The fields of a line in COPY's text and CSV formats. A field is a slice of the line, or of a
//! buffer if an escape had to be resolved.

use runtime::work::STRIDE;

use query::plan::{CopyFormat, CopyKind};
use values::error::SqlError;
use values::work;

/// Where a field's bytes are.
#[derive(Clone, Copy)]
enum Field {
    Null,
    /// In the line itself, from here to there.
    Line(usize, usize),
    /// In the buffer.
    Unescaped(usize, usize),
}

/// A field as the line has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shown<'a> {
    /// NULL.
    Null,
    /// These bytes of the line, from here to there.
    Line(usize, usize),
    /// These bytes, which the line has in another form.
    Unescaped(&'a [u8]),
}

/// The fields of one line after the other; memory is used again.
#[derive(Default)]
pub(super) struct Fields {
    fields: Vec<Field>,
    unescaped: Vec<u8>,
}

/// Words of the same byte eight times.
const fn eight(byte: u8) -> u64 {
    byte as u64 * 0x0101_0101_0101_0101
}

/// A bit set in each byte that is zero; those above the lowest such byte may be set wrongly.
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(eight(1)) & !word & eight(0x80)
}

/// The first place at or after `from` of one of two bytes, or the end. Compares eight bytes at
/// once.
pub(super) fn find(bytes: &[u8], from: usize, a: u8, b: u8) -> usize {
    let mut at = from;
    while let Some(word) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let found = zeros(word ^ eight(a)) | zeros(word ^ eight(b));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < bytes.len() && bytes[at] != a && bytes[at] != b {
        at += 1;
    }
    at
}

/// As [`find`], with safe points.
pub(super) fn find_paced(bytes: &[u8], from: usize, a: u8, b: u8) -> Result<usize, SqlError> {
    let mut from = from;
    loop {
        let end = bytes.len().min(from + STRIDE);
        let at = find(&bytes[..end], from, a, b);
        if at < end || end == bytes.len() {
            return Ok(at);
        }
        work::tick(STRIDE)?;
        from = end;
    }
}

/// Whether the bytes contain one of two. Compares sixteen bytes at a time, without a branch.
pub(super) fn has_either(bytes: &[u8], a: u8, b: u8) -> bool {
    fn is_in(chunk: &[u8; 16], a: u8, b: u8) -> bool {
        chunk.iter().fold(0, |found, byte| found | u8::from(*byte == a) | u8::from(*byte == b)) != 0
    }
    let (chunks, rest) = bytes.as_chunks();
    match bytes.last_chunk() {
        // The last ones once more, together with the rest.
        Some(last) => is_in(last, a, b) || chunks.iter().any(|chunk| is_in(chunk, a, b)),
        None => rest.contains(&a) || rest.contains(&b),
    }
}

impl Fields {
    /// Cuts a line into fields. It stops once it has more than `most` of them.
    pub fn cut(&mut self, line: &[u8], format: &CopyFormat, most: usize) -> Result<(), SqlError> {
        self.fields.clear();
        self.unescaped.clear();
        match format.kind {
            CopyKind::Csv => self.cut_csv(line, format, most),
            _ => self.cut_text(line, format, most),
        }
    }

    /// How many the line had.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// One of them.
    pub fn get(&self, at: usize) -> Shown<'_> {
        match self.fields[at] {
            Field::Null => Shown::Null,
            Field::Line(start, end) => Shown::Line(start, end),
            Field::Unescaped(start, end) => Shown::Unescaped(&self.unescaped[start..end]),
        }
    }

    fn cut_text(&mut self, mut line: &[u8], format: &CopyFormat, most: usize) -> Result<(), SqlError> {
        let null = format.null.as_bytes();
        // Where the field begins in the line, and in the buffer once it has a copy there.
        let (mut start, mut own) = (0, None);
        // The line's bytes before this place are in the buffer, if the field has a copy there.
        let mut copied = 0;
        let mut at = 0;
        loop {
            at = find_paced(line, at, format.delimiter, b'\\')?;
            if line.get(at) == Some(&b'\\') && format.delimiter != b'\\' {
                // A backslash at the line's end, where no newline ends it, is no part of it.
                let Some(escaped) = line.get(at + 1) else {
                    line = &line[..at];
                    continue;
                };
                own.get_or_insert(self.unescaped.len());
                work::tick(4)?;
                work::put(&line[copied.max(start)..at], &mut self.unescaped)?;
                at += 2;
                let byte = unescape(line, &mut at, *escaped);
                self.unescaped.push(byte);
                copied = at;
                continue;
            }
            let raw = &line[start..at];
            self.fields.push(match own.take() {
                _ if raw == null => Field::Null,
                None => Field::Line(start, at),
                Some(own) => {
                    work::put(&line[copied..at], &mut self.unescaped)?;
                    Field::Unescaped(own, self.unescaped.len())
                }
            });
            if at == line.len() || self.fields.len() > most {
                return Ok(());
            }
            at += 1;
            start = at;
        }
    }

    fn cut_csv(&mut self, line: &[u8], format: &CopyFormat, most: usize) -> Result<(), SqlError> {
        let (quote, escape) = (format.quote, format.escape);
        let mut at = 0;
        loop {
            let start = at;
            at = find_paced(line, at, format.delimiter, quote)?;
            if at == line.len() || line[at] == format.delimiter && format.delimiter != quote {
                let field = &line[start..at];
                let null = field == format.null.as_bytes();
                self.fields.push(if null { Field::Null } else { Field::Line(start, at) });
            } else {
                // Something is quoted, so it isn't NULL.
                let own = self.unescaped.len();
                work::put(&line[start..at], &mut self.unescaped)?;
                let (mut inside, mut next_tick) = (false, at + STRIDE);
                while at < line.len() && (inside || line[at] != format.delimiter) {
                    if at >= next_tick {
                        work::tick(STRIDE)?;
                        next_tick = at + STRIDE;
                    }
                    let (byte, next) = (line[at], line.get(at + 1).copied());
                    at += 1;
                    let escapes =
                        byte == escape && (next == Some(quote) || (next == Some(escape) && escape != quote));
                    if inside && escapes {
                        self.unescaped.push(line[at]);
                        at += 1;
                    } else if byte == quote {
                        inside = !inside;
                    } else {
                        self.unescaped.push(byte);
                    }
                }
                self.fields.push(Field::Unescaped(own, self.unescaped.len()));
            }
            if at == line.len() || self.fields.len() > most {
                return Ok(());
            }
            at += 1;
        }
    }
}

/// The byte that an escape stands for; `at` is behind the escaped one and goes on over its digits.
fn unescape(line: &[u8], at: &mut usize, escaped: u8) -> u8 {
    match escaped {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'0'..=b'7' => number(line, at, u32::from(escaped - b'0'), 8, 2),
        b'x' if line.get(*at).is_some_and(u8::is_ascii_hexdigit) => number(line, at, 0, 16, 2),
        other => other,
    }
}

/// A byte written as up to `more` further digits of a base.
fn number(line: &[u8], at: &mut usize, first: u32, base: u32, more: usize) -> u8 {
    let mut value = first;
    for _ in 0..more {
        let Some(digit) = line.get(*at).and_then(|byte| char::from(*byte).to_digit(base)) else { break };
        value = value * base + digit;
        *at += 1;
    }
    value as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(kind: CopyKind) -> CopyFormat {
        let csv = kind == CopyKind::Csv;
        CopyFormat {
            kind,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".to_owned() },
            header: false,
            quote: b'"',
            escape: b'"',
            force_quote: Vec::new(),
        }
    }

    fn cut(line: &str, format: &CopyFormat) -> Vec<Option<String>> {
        let mut fields = Fields::default();
        // The rest of an earlier line is gone.
        fields.cut(b"left\\tover\t\"a\"", format, 9).unwrap();
        fields.cut(line.as_bytes(), format, 9).unwrap();
        let text = |bytes: &[u8]| Some(String::from_utf8(bytes.to_vec()).unwrap());
        (0..fields.len())
            .map(|at| match fields.get(at) {
                Shown::Null => None,
                Shown::Line(start, end) => text(&line.as_bytes()[start..end]),
                Shown::Unescaped(bytes) => text(bytes),
            })
            .collect()
    }

    fn is(line: &str, format: &CopyFormat, expected: &[Option<&str>]) {
        let expected: Vec<Option<String>> = expected.iter().map(|field| field.map(str::to_owned)).collect();
        assert_eq!(cut(line, format), expected, "{line:?}");
    }

    #[test]
    fn a_text_line_splits_into_its_fields() {
        let text = format(CopyKind::Text);
        is("", &text, &[Some("")]);
        is("1\t22\t\t\\N", &text, &[Some("1"), Some("22"), Some(""), None]);
        is(
            "a long field without any escape\tb",
            &text,
            &[Some("a long field without any escape"), Some("b")],
        );
        is("tab\\there\tand \\\\ and \\,", &text, &[Some("tab\there"), Some("and \\ and ,")]);
        is("\\x41\\x4gh\\101\\1018\\7\t\\q", &text, &[Some("A\u{4}ghAA8\u{7}"), Some("q")]);
        is("at the end \\", &text, &[Some("at the end ")]);
        is("\\ta\\", &text, &[Some("\ta")]);
        is("a\t\\N\\", &text, &[Some("a"), None]);
        is("\\\t\t", &text, &[Some("\t"), Some("")]);
        is("\\N\\N\t\\\\N", &text, &[Some("NN"), Some("\\N")]);
    }

    #[test]
    fn a_csv_line_splits_into_its_fields() {
        let csv = format(CopyKind::Csv);
        is("", &csv, &[None]);
        is("1,,\"\",x", &csv, &[Some("1"), None, Some(""), Some("x")]);
        is("\"a,\"\"b\"\"\",c", &csv, &[Some("a,\"b\""), Some("c")]);
        is("a\"b,c\"d,", &csv, &[Some("ab,cd"), None]);
        is("\"two\nlines\"", &csv, &[Some("two\nlines")]);
        let other = CopyFormat { escape: b'\\', ..format(CopyKind::Csv) };
        is("\"a\\\"b\\\\c\\d\",e\\", &other, &[Some("a\"b\\c\\d"), Some("e\\")]);
    }

    #[test]
    fn a_long_line_is_cut_with_safe_points() {
        let (text, csv) = (format(CopyKind::Text), format(CopyKind::Csv));
        let backslash = CopyFormat { escape: b'\\', ..format(CopyKind::Csv) };
        let quoted = |inner: &str| format!("\"{}\"", inner.repeat(1 << 21));
        for (line, format) in [
            ("a".repeat(1 << 22), &text),
            ("a".repeat(1 << 22), &csv),
            ("\\n".repeat(1 << 21), &text),
            ("\\101".repeat(1 << 20), &text),
            (quoted("\"\""), &csv),
            (quoted("ab"), &csv),
            (quoted("\\\""), &backslash),
        ] {
            let mut fields = Fields::default();
            let budget = 1 << 20;
            let ended = runtime::budget::within(budget, || fields.cut(line.as_bytes(), format, 2));
            assert!(ended.is_err(), "{:?}", &line[..8]);
        }
        // No more fields are cut than are wanted, and one to show that there are too many.
        let mut fields = Fields::default();
        fields.cut("\t".repeat(1 << 22).as_bytes(), &text, 2).unwrap();
        assert_eq!(fields.len(), 3);
    }

    #[test]
    fn bytes_are_found_wherever_they_are() {
        for len in 0..40 {
            for place in 0..=len {
                let mut bytes = vec![b'a'; len];
                if place < len {
                    bytes[place] = b'\n';
                }
                bytes.push(b'z');
                for from in 0..=len {
                    let expected = if place < len && from <= place { place } else { len };
                    assert_eq!(find(&bytes, from, b'\n', b'z'), expected, "{len} {place} {from}");
                }
            }
        }
        for len in 0..70 {
            for place in 0..=len {
                let mut bytes = vec![b'a'; len];
                assert!(!has_either(&bytes, b'\r', 0), "{len}");
                for sought in [b'\r', 0] {
                    bytes.resize(len, b'a');
                    bytes.insert(place, sought);
                    assert!(has_either(&bytes, b'\r', 0), "{len} {place}");
                    bytes.remove(place);
                }
            }
        }
        assert_eq!(find(&[0x0b, 0x8a, 0x0a], 0, b'\n', b'\n'), 2);
        assert_eq!(find(&[9, 11, 11, 11, 11, 11, 10, 11, 10], 0, b'\n', b'\n'), 6);
    }
}
