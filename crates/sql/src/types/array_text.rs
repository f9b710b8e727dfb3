//! Arrays and records as text.

use super::registry::element_of;
use super::{ArrayBuilder, ArrayRef, Datum, RecordRef, Type, oid, text};
use crate::error::{SqlError, SqlState};
use crate::expr::Environment;

/// Appends `{...}`.
pub fn write(array: ArrayRef<'_>, session: &dyn Environment, out: &mut Vec<u8>) {
    let lengths: Vec<(i32, i32)> =
        (0..array.dimensions()).filter_map(|index| array.dimension(index)).collect();
    if lengths.is_empty() {
        out.extend_from_slice(b"{}");
        return;
    }
    if lengths.iter().any(|(_, lower)| *lower != 1) {
        for (length, lower) in &lengths {
            out.extend_from_slice(format!("[{lower}:{}]", lower + length - 1).as_bytes());
        }
        out.push(b'=');
    }
    let element = Type::new(array.element_type());
    let mut values = array.iter();
    write_level(&lengths, element, &mut values, session, out);
}

fn write_level<'a>(
    lengths: &[(i32, i32)],
    element: Type,
    values: &mut impl Iterator<Item = Datum<'a>>,
    session: &dyn Environment,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for index in 0..lengths[0].0 {
        if index > 0 {
            out.push(b',');
        }
        runtime::work::give_way(16);
        if lengths.len() > 1 {
            write_level(&lengths[1..], element, values, session, out);
            continue;
        }
        match values.next() {
            None | Some(Datum::Null) => out.extend_from_slice(b"NULL"),
            Some(value) => {
                let start = out.len();
                text::write(value, element, session, out);
                if needs_quotes(&out[start..]) {
                    let plain = out.split_off(start);
                    quote(&plain, b'\\', out);
                }
            }
        }
    }
    out.push(b'}');
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn needs_quotes(text: &[u8]) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case(b"null")
        || text.iter().any(|byte| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',') || is_space(*byte))
}

/// Appends the text in double quotes; a quote is escaped by `escape`, a backslash by a backslash.
fn quote(text: &[u8], escape: u8, out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(escape);
        } else if byte == b'\\' {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends `(...)`.
pub fn write_record(record: &RecordRef<'_>, session: &dyn Environment, out: &mut Vec<u8>) {
    out.push(b'(');
    for (index, (value, ty)) in record.fields.iter().zip(record.types).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        let start = out.len();
        text::write(*value, *ty, session, out);
        let plain = &out[start..];
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',') || is_space(*byte);
        if plain.is_empty() || plain.iter().any(special) {
            let plain = out.split_off(start);
            quote(&plain, b'"', out);
        }
    }
    out.push(b')');
}

/// Reads an array's text into its packed form.
pub fn parse(input: &str, ty: Type, session: &dyn Environment) -> Result<Vec<u8>, SqlError> {
    let element = Type::with_modifier(element_of(ty.oid).unwrap_or(oid::TEXT), ty.modifier);
    let mut parser =
        Parser { input, rest: input.trim(), depths: Vec::new(), builder: ArrayBuilder::new(element.oid) };
    let bounds = parser.bounds()?;
    if !parser.rest.starts_with('{') {
        return Err(parser.malformed("Array value must start with \"{\" or dimension information."));
    }
    parser.level(0, element, session)?;
    if !parser.rest.trim().is_empty() {
        return Err(parser.malformed("Junk after closing right brace."));
    }
    if parser.builder.is_empty() {
        return Ok(parser.builder.finish());
    }
    let mut dimensions: Vec<(i32, i32)> = parser.depths.iter().map(|length| (*length, 1)).collect();
    if let Some(bounds) = bounds {
        if bounds.iter().map(|(length, _)| *length).ne(dimensions.iter().map(|(length, _)| *length)) {
            return Err(parser.malformed("Specified array dimensions do not match array contents."));
        }
        dimensions = bounds;
    }
    Ok(parser.builder.finish_with(&dimensions))
}

struct Parser<'t> {
    input: &'t str,
    rest: &'t str,
    /// Length of each dimension, as the first sub-array has it.
    depths: Vec<i32>,
    builder: ArrayBuilder,
}

impl Parser<'_> {
    fn malformed(&self, detail: &str) -> SqlError {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{}\"", self.input),
        )
        .with_detail(detail)
    }

    /// `[1:3][0:1]=` in front.
    fn bounds(&mut self) -> Result<Option<Vec<(i32, i32)>>, SqlError> {
        if !self.rest.starts_with('[') {
            return Ok(None);
        }
        let Some((bounds, rest)) = self.rest.split_once('=') else {
            return Err(self.malformed("Missing \"=\" after array dimensions."));
        };
        let mut dimensions = Vec::new();
        for part in bounds.trim().split(']').filter(|part| !part.is_empty()) {
            let bad = || self.malformed("\"[\" must introduce explicitly-specified array dimensions.");
            let range = part.trim().strip_prefix('[').ok_or_else(bad)?;
            let (lower, upper) = range.split_once(':').unwrap_or(("1", range));
            let (lower, upper): (i32, i32) =
                (lower.trim().parse().map_err(|_| bad())?, upper.trim().parse().map_err(|_| bad())?);
            if upper < lower {
                return Err(SqlError::new(
                    SqlState::ARRAY_SUBSCRIPT_ERROR,
                    "upper bound cannot be less than lower bound",
                ));
            }
            dimensions.push((upper.saturating_sub(lower).saturating_add(1), lower));
        }
        self.rest = rest.trim_start();
        Ok(Some(dimensions))
    }

    fn level(&mut self, depth: usize, element: Type, session: &dyn Environment) -> Result<(), SqlError> {
        if depth >= 6 {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "number of array dimensions exceeds the maximum allowed (6)",
            ));
        }
        self.rest = self.rest[1..].trim_start();
        let mut count = 0;
        let nested = self.rest.starts_with('{');
        let known = self.depths.len() > depth;
        if !known {
            self.depths.push(0);
        }
        if self.rest.starts_with('}') {
            self.rest = &self.rest[1..];
            return if depth == 0 { Ok(()) } else { self.check_length(depth, 0, known) };
        }
        loop {
            if self.rest.starts_with('{') {
                if !nested {
                    return Err(self.malformed("Unexpected array element."));
                }
                self.level(depth + 1, element, session)?;
            } else if nested {
                return Err(self.malformed("Unexpected array element."));
            } else {
                self.element(element, session)?;
            }
            count += 1;
            self.rest = self.rest.trim_start();
            match self.rest.as_bytes().first() {
                Some(b',') => self.rest = self.rest[1..].trim_start(),
                Some(b'}') => {
                    self.rest = &self.rest[1..];
                    return self.check_length(depth, count, known);
                }
                _ => return Err(self.malformed("Unexpected end of input.")),
            }
        }
    }

    fn check_length(&mut self, depth: usize, count: i32, known: bool) -> Result<(), SqlError> {
        if known && self.depths[depth] != count {
            return Err(
                self.malformed("Multidimensional arrays must have sub-arrays with matching dimensions.")
            );
        }
        self.depths[depth] = count;
        Ok(())
    }

    fn element(&mut self, element: Type, session: &dyn Environment) -> Result<(), SqlError> {
        let mut value = String::new();
        let mut quoted = false;
        let mut chars = self.rest.char_indices();
        // Unquoted white space at the end does not count.
        let mut significant = 0;
        let end = loop {
            match chars.next() {
                None => return Err(self.malformed("Unexpected end of input.")),
                Some((at, ',' | '}')) => break at,
                Some((_, '{')) => return Err(self.malformed("Unexpected \"{\" character.")),
                Some((_, '\\')) => {
                    let Some((_, c)) = chars.next() else {
                        return Err(self.malformed("Unexpected end of input."));
                    };
                    value.push(c);
                    significant = value.len();
                    quoted = true;
                }
                Some((_, '"')) => {
                    quoted = true;
                    loop {
                        match chars.next() {
                            None => return Err(self.malformed("Unexpected end of input.")),
                            Some((_, '"')) => break,
                            Some((_, '\\')) => value.extend(chars.next().map(|(_, c)| c)),
                            Some((_, c)) => {
                                value.push(c);
                                crate::work::tick(1)?;
                            }
                        }
                    }
                    significant = value.len();
                }
                Some((_, c)) => {
                    value.push(c);
                    crate::work::tick(1)?;
                    if !c.is_ascii_whitespace() {
                        significant = value.len();
                    }
                }
            }
        };
        value.truncate(significant);
        crate::work::tick(16)?;
        self.rest = &self.rest[end..];
        if !quoted && value.is_empty() {
            return Err(self.malformed(&format!("Unexpected \"{}\" character.", &self.rest[..1])));
        }
        if !quoted && value.eq_ignore_ascii_case("null") {
            self.builder.push(Datum::Null);
            return Ok(());
        }
        let arena = bumpalo::Bump::new();
        self.builder.push(text::parse(&value, element, session, &arena)?);
        Ok(())
    }
}
