//! Arrays as text, both ways.
//!
//! Reading follows PostgreSQL's rules to the letter: a malformed text gets PostgreSQL's SQLSTATE,
//! message and detail.
//!
//! What must hold:
//!
//! 1. An element is quoted where the reader would take it for something else: the empty text, NULL,
//!    white space, braces, commas, quotes, backslashes.
//! 2. Bounds precede the braces exactly where a lower bound is not 1.
//! 3. All sub-arrays of a level have one length, which the first of them or the bounds decide.
//! 4. An element's text is read by its own type, with the array's modifier.

use super::quote::{is_space, quote};
use crate::environment::Environment;
use crate::error::{SqlError, SqlState, for_message};
use crate::types::array::{MAX_DIMENSIONS, MAX_ELEMENTS};
use crate::types::registry::element_of;
use crate::types::{ArrayBuilder, ArrayRef, Datum, Type, oid};
use crate::work;

/// Appends an array as `{...}`, after its bounds where they do not begin at 1.
pub(super) fn write(
    array: ArrayRef<'_>,
    session: &dyn Environment,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let lengths: Vec<(i32, i32)> =
        (0..array.dimensions()).filter_map(|index| array.dimension(index)).collect();
    if lengths.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    if lengths.iter().any(|(_, lower)| *lower != 1) {
        for (length, lower) in &lengths {
            out.extend_from_slice(format!("[{lower}:{}]", lower + (length - 1)).as_bytes());
        }
        out.push(b'=');
    }
    let element = Type::new(array.element_type());
    let mut values = array.iter();
    write_level(&lengths, element, &mut values, session, out)
}

fn write_level<'a>(
    lengths: &[(i32, i32)],
    element: Type,
    values: &mut impl Iterator<Item = Result<Datum<'a>, SqlError>>,
    session: &dyn Environment,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    out.push(b'{');
    for index in 0..lengths[0].0 {
        if index > 0 {
            out.push(b',');
        }
        work::tick(16)?;
        if lengths.len() > 1 {
            write_level(&lengths[1..], element, values, session, out)?;
            continue;
        }
        match values.next().transpose()? {
            None | Some(Datum::Null) => out.extend_from_slice(b"NULL"),
            Some(value) => {
                let start = out.len();
                super::write(value, element, session, out)?;
                if needs_quotes(&out[start..])? {
                    quote(start, b'\\', out)?;
                }
            }
        }
    }
    out.push(b'}');
    Ok(())
}

fn needs_quotes(text: &[u8]) -> Result<bool, SqlError> {
    if text.is_empty() || text.eq_ignore_ascii_case(b"null") {
        return Ok(true);
    }
    work::any(text, |byte| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',') || is_space(byte))
}

/// Reads an array's text into its packed form.
pub(super) fn parse(input: &str, ty: Type, session: &dyn Environment) -> Result<Vec<u8>, SqlError> {
    let element = Type::with_modifier(element_of(ty.oid).unwrap_or(oid::TEXT), ty.modifier);
    let mut parser = Parser { input, at: 0, value: String::new() };
    let bounds = parser.bounds()?;
    let mut shape = Shape::new(&bounds);
    let mut builder = ArrayBuilder::new(element.oid);
    let arena = bumpalo::Bump::new();
    loop {
        work::tick(16)?;
        match parser.token()? {
            Token::Open => shape.open(&parser)?,
            Token::Close => {
                shape.close(&parser)?;
                if shape.level == 0 {
                    break;
                }
            }
            Token::Delimiter => shape.delimiter(&parser)?,
            Token::Null => {
                shape.element(&parser)?;
                builder.push(Datum::Null)?;
            }
            Token::Element => {
                shape.element(&parser)?;
                let value = std::mem::take(&mut parser.value);
                builder.push(super::parse(&value, element, session, &arena)?)?;
            }
        }
    }
    parser.skip_space()?;
    if parser.at < input.len() {
        return Err(parser.malformed("Junk after closing right brace."));
    }
    if builder.is_empty() {
        return builder.finish();
    }
    let lower = |at: usize| bounds.get(at).map_or(1, |(_, lower)| *lower);
    let dimensions: Vec<(i32, i32)> =
        shape.lengths.iter().enumerate().map(|(at, length)| (length.unwrap_or(0), lower(at))).collect();
    builder.finish_with(&dimensions)
}

/// A token of an array's text.
enum Token {
    Open,
    Close,
    Delimiter,
    Null,
    /// An element; the parser holds its text.
    Element,
}

/// The shape so far: it decides which tokens may come next.
struct Shape {
    /// Number of open braces.
    level: usize,
    /// Elements so far at each open level.
    counts: Vec<i32>,
    /// Length of each dimension: as declared, or that of the first sub-array.
    lengths: Vec<Option<i32>>,
    /// The number of dimensions is final: it was declared, or an element was read.
    settled: bool,
    declared: bool,
    /// A delimiter or a closing brace must follow.
    wants_delimiter: bool,
}

impl Shape {
    fn new(bounds: &[(i32, i32)]) -> Shape {
        Shape {
            level: 0,
            counts: Vec::new(),
            lengths: bounds.iter().map(|(length, _)| Some(*length)).collect(),
            settled: !bounds.is_empty(),
            declared: !bounds.is_empty(),
            wants_delimiter: false,
        }
    }

    fn mismatch(&self, parser: &Parser<'_>) -> SqlError {
        parser.malformed(match self.declared {
            true => "Specified array dimensions do not match array contents.",
            false => "Multidimensional arrays must have sub-arrays with matching dimensions.",
        })
    }

    fn open(&mut self, parser: &Parser<'_>) -> Result<(), SqlError> {
        if self.wants_delimiter {
            return Err(parser.unexpected('{'));
        }
        if self.level >= MAX_DIMENSIONS {
            return Err(too_deep());
        }
        self.counts.push(0);
        self.level += 1;
        if self.level > self.lengths.len() {
            if self.settled {
                return Err(self.mismatch(parser));
            }
            self.lengths.push(None);
        }
        Ok(())
    }

    fn close(&mut self, parser: &Parser<'_>) -> Result<(), SqlError> {
        let count = self.counts.pop().unwrap_or(0);
        if count > 0 && !self.wants_delimiter {
            return Err(parser.unexpected('}'));
        }
        self.level -= 1;
        if let Some(outer) = self.counts.last_mut() {
            *outer += 1;
        }
        if *self.lengths[self.level].get_or_insert(count) != count {
            return Err(self.mismatch(parser));
        }
        self.wants_delimiter = true;
        Ok(())
    }

    fn delimiter(&mut self, parser: &Parser<'_>) -> Result<(), SqlError> {
        if !self.wants_delimiter {
            return Err(parser.unexpected(','));
        }
        self.wants_delimiter = false;
        Ok(())
    }

    fn element(&mut self, parser: &Parser<'_>) -> Result<(), SqlError> {
        if self.wants_delimiter {
            return Err(parser.malformed("Unexpected array element."));
        }
        if self.level != self.lengths.len() {
            return Err(self.mismatch(parser));
        }
        self.settled = true;
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
        }
        self.wants_delimiter = true;
        Ok(())
    }
}

struct Parser<'t> {
    input: &'t str,
    at: usize,
    /// The text of the last element.
    value: String,
}

impl Parser<'_> {
    fn malformed(&self, detail: &str) -> SqlError {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{}\"", for_message(self.input)),
        )
        .with_detail(detail)
    }

    fn unexpected(&self, c: char) -> SqlError {
        self.malformed(&format!("Unexpected \"{c}\" character."))
    }

    fn unfinished(&self) -> SqlError {
        self.malformed("Unexpected end of input.")
    }

    fn peek(&self) -> Option<u8> {
        self.input.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) -> Result<(), SqlError> {
        if self.peek().is_some_and(is_space) {
            let rest = &self.input.as_bytes()[self.at..];
            self.at += work::position(rest, |byte| !is_space(byte))?.unwrap_or(rest.len());
        }
        Ok(())
    }

    /// Reads the declared dimensions in front, `[1:3][0:1]=`: length and lower bound of each.
    fn bounds(&mut self) -> Result<Vec<(i32, i32)>, SqlError> {
        let mut bounds = Vec::new();
        loop {
            self.skip_space()?;
            if self.peek() != Some(b'[') {
                break;
            }
            self.at += 1;
            if bounds.len() >= MAX_DIMENSIONS {
                return Err(too_deep());
            }
            let missing = "\"[\" must introduce explicitly-specified array dimensions.";
            let first = self.bound()?.ok_or_else(|| self.malformed(missing))?;
            let (lower, upper) = match self.peek() {
                Some(b':') => {
                    self.at += 1;
                    let missing = "Missing array dimension value.";
                    (first, self.bound()?.ok_or_else(|| self.malformed(missing))?)
                }
                _ => (1, first),
            };
            if self.peek() != Some(b']') {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            }
            self.at += 1;
            bounds.push((length(lower, upper)?, lower));
        }
        if !bounds.is_empty() {
            if self.peek() != Some(b'=') {
                return Err(self.malformed("Missing \"=\" after array dimensions."));
            }
            self.at += 1;
            self.skip_space()?;
        }
        match (self.peek(), bounds.is_empty()) {
            (Some(b'{'), _) => Ok(bounds),
            (_, true) => Err(self.malformed("Array value must start with \"{\" or dimension information.")),
            _ => Err(self.malformed("Array contents must start with \"{\".")),
        }
    }

    /// Reads a bound; None when no digit follows.
    fn bound(&mut self) -> Result<Option<i32>, SqlError> {
        let rest = &self.input[self.at..];
        let sign = usize::from(rest.starts_with(['-', '+']));
        let end = work::position(&rest.as_bytes()[sign..], |byte| !byte.is_ascii_digit())?;
        let digits = end.map_or(&rest[sign..], |end| &rest[sign..sign + end]);
        if digits.is_empty() {
            return Ok(None);
        }
        self.at += sign + digits.len();
        let zeros = work::position(digits.as_bytes(), |byte| byte != b'0')?.unwrap_or(digits.len() - 1);
        // A number of eleven digits is out of range as well.
        let significant = &digits[zeros..digits.len().min(zeros + 11)];
        let magnitude: i64 = significant.parse().unwrap_or(i64::MAX);
        let bound = if rest.starts_with('-') { -magnitude } else { magnitude };
        i32::try_from(bound).map(Some).map_err(|_| {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "array bound is out of integer range")
        })
    }

    fn token(&mut self) -> Result<Token, SqlError> {
        self.skip_space()?;
        let token = match self.peek() {
            None => return Err(self.unfinished()),
            Some(b'{') => Token::Open,
            Some(b'}') => Token::Close,
            Some(b',') => Token::Delimiter,
            Some(b'"') => {
                self.at += 1;
                return self.quoted();
            }
            Some(_) => return self.unquoted(),
        };
        self.at += 1;
        Ok(token)
    }

    fn quoted(&mut self) -> Result<Token, SqlError> {
        self.value.clear();
        let mut characters = self.input[self.at..].char_indices();
        loop {
            work::tick(1)?;
            match characters.next() {
                None => return Err(self.unfinished()),
                Some((_, '\\')) => {
                    let (_, c) = characters.next().ok_or_else(|| self.unfinished())?;
                    self.value.push(c);
                }
                Some((at, '"')) => {
                    self.at += at + 1;
                    break;
                }
                Some((_, c)) => self.value.push(c),
            }
        }
        self.skip_space()?;
        match self.peek() {
            Some(b',' | b'}' | b'{') => Ok(Token::Element),
            _ => Err(self.malformed("Incorrectly quoted array element.")),
        }
    }

    fn unquoted(&mut self) -> Result<Token, SqlError> {
        self.value.clear();
        let (mut escaped, mut significant) = (false, 0);
        let mut characters = self.input[self.at..].char_indices();
        let end = loop {
            work::tick(1)?;
            match characters.next() {
                None => return Err(self.unfinished()),
                Some((_, '{')) => return Err(self.unexpected('{')),
                // An element is quoted as a whole or not at all.
                Some((_, '"')) => return Err(self.malformed("Incorrectly quoted array element.")),
                Some((_, '\\')) => {
                    let (_, c) = characters.next().ok_or_else(|| self.unfinished())?;
                    self.value.push(c);
                    significant = self.value.len();
                    escaped = true;
                }
                Some((at, ',' | '}')) => break at,
                Some((_, c)) => {
                    self.value.push(c);
                    // White space at the element's end is not part of it.
                    if !u8::try_from(c).is_ok_and(is_space) {
                        significant = self.value.len();
                    }
                }
            }
        };
        self.at += end;
        self.value.truncate(significant);
        let null = !escaped && self.value.eq_ignore_ascii_case("null");
        Ok(if null { Token::Null } else { Token::Element })
    }
}

/// The length of a dimension with these bounds.
fn length(lower: i32, upper: i32) -> Result<i32, SqlError> {
    if upper < lower {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "upper bound cannot be less than lower bound",
        ));
    }
    let limit = |message: String| SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message);
    if upper == i32::MAX {
        return Err(limit(format!("array upper bound is too large: {upper}")));
    }
    upper
        .checked_sub(lower)
        .and_then(|length| length.checked_add(1))
        .ok_or_else(|| limit(format!("array size exceeds the maximum allowed ({MAX_ELEMENTS})")))
}

#[cold]
fn too_deep() -> SqlError {
    let message = format!("number of array dimensions exceeds the maximum allowed ({MAX_DIMENSIONS})");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}
