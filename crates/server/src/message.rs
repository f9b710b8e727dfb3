//! The bodies of a client's messages: one function for each type of message that has fields.
//!
//! The session calls these functions, and so does the fuzzer (`crates/readers`). What must hold: a
//! function takes the whole body and refuses bytes that are left over; what it returns borrows from
//! the body. Strings are UTF-8, format codes are 0 or 1.

use smallvec::SmallVec;

use crate::decode::{Fields, Violation};

/// Format codes, each 0 for text or 1 for binary.
pub type Formats = SmallVec<[i16; 16]>;

/// Parse: a statement to prepare.
#[derive(Debug)]
pub struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub name: &'a str,
    /// The statement's text.
    pub text: &'a str,
    /// The parameters' types as OIDs; 0 leaves a type open.
    pub types: SmallVec<[u32; 16]>,
}

/// Bind: a portal of a prepared statement and its parameters.
#[derive(Debug, Default)]
pub struct Bind<'a> {
    /// The portal's name; empty for the unnamed one.
    pub portal: &'a str,
    /// The statement's name; empty for the unnamed one.
    pub statement: &'a str,
    /// The parameters' formats: none, one for all, or one each.
    pub formats: Formats,
    /// The parameters; `None` is NULL.
    pub values: SmallVec<[Option<&'a [u8]>; 16]>,
    /// The result columns' formats: none, one for all, or one each.
    pub results: Formats,
}

/// The object that Describe or Close names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// The prepared statement of this name.
    Statement(&'a str),
    /// The portal of this name.
    Portal(&'a str),
}

/// Execute: a portal to run.
#[derive(Debug)]
pub struct Execute<'a> {
    /// The portal's name; empty for the unnamed one.
    pub portal: &'a str,
    /// The most rows to return; 0 for all.
    pub limit: u32,
}

/// SASLInitialResponse: the client's choice of a mechanism and its first message.
#[derive(Debug)]
pub struct SaslInitial<'a> {
    /// The mechanism's name.
    pub mechanism: &'a str,
    /// The first message; empty if the client sends none.
    pub data: &'a [u8],
}

/// Query: the text of statements.
#[inline]
pub fn query(body: &[u8]) -> Result<&str, Violation> {
    whole(body, Fields::string)
}

/// Parse.
#[inline]
pub fn parse(body: &[u8]) -> Result<Parse<'_>, Violation> {
    whole(body, |fields| {
        let (name, text) = (fields.string()?, fields.string()?);
        let mut types = SmallVec::new();
        for _ in 0..fields.count()? {
            types.push(fields.u32()?);
        }
        Ok(Parse { name, text, types })
    })
}

/// Bind. Fills an empty one where it lies: it has 400 bytes, and a copy would be made for each
/// statement.
#[inline]
pub fn bind<'a>(body: &'a [u8], into: &mut Bind<'a>) -> Result<(), Violation> {
    whole(body, |fields| {
        (into.portal, into.statement) = (fields.string()?, fields.string()?);
        formats(fields, &mut into.formats)?;
        for _ in 0..fields.count()? {
            into.values.push(fields.value()?);
        }
        formats(fields, &mut into.results)
    })
}

#[inline]
fn formats(fields: &mut Fields<'_>, formats: &mut Formats) -> Result<(), Violation> {
    let codes = 2 * fields.count()?;
    let (codes, _) = fields.bytes(codes)?.as_chunks();
    for code in codes {
        let format = i16::from_be_bytes(*code);
        if !matches!(format, 0 | 1) {
            return Err(Violation::Format(format));
        }
        formats.push(format);
    }
    Ok(())
}

/// Describe.
#[inline]
pub fn describe(body: &[u8]) -> Result<Target<'_>, Violation> {
    target(body, "DESCRIBE")
}

/// Close.
#[inline]
pub fn close(body: &[u8]) -> Result<Target<'_>, Violation> {
    target(body, "CLOSE")
}

#[inline]
fn target<'a>(body: &'a [u8], message: &'static str) -> Result<Target<'a>, Violation> {
    let (kind, name) = whole(body, |fields| Ok((fields.u8()?, fields.string()?)))?;
    match kind {
        b'S' => Ok(Target::Statement(name)),
        b'P' => Ok(Target::Portal(name)),
        kind => Err(Violation::Subtype { message, kind }),
    }
}

/// Execute.
#[inline]
pub fn execute(body: &[u8]) -> Result<Execute<'_>, Violation> {
    whole(body, |fields| Ok(Execute { portal: fields.string()?, limit: fields.u32()? }))
}

/// CopyFail: the client's reason.
pub fn copy_fail(body: &[u8]) -> Result<&str, Violation> {
    whole(body, Fields::string)
}

/// SASLInitialResponse.
pub fn sasl_initial(body: &[u8]) -> Result<SaslInitial<'_>, Violation> {
    whole(body, |fields| {
        Ok(SaslInitial { mechanism: fields.string()?, data: fields.value()?.unwrap_or_default() })
    })
}

/// Reads the fields of a body and refuses bytes behind them.
#[inline]
fn whole<'a, T>(
    body: &'a [u8],
    read: impl FnOnce(&mut Fields<'a>) -> Result<T, Violation>,
) -> Result<T, Violation> {
    let mut fields = Fields::new(body);
    let read = read(&mut fields)?;
    fields.end()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_gives_parameters_and_formats() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\xff\xff\xff\xff\0\0\0\x02ab\0\x01\0\0";
        let mut bind = Bind::default();
        super::bind(body, &mut bind).unwrap();
        assert_eq!((bind.portal, bind.statement), ("p", "s"));
        assert_eq!((bind.formats.as_slice(), bind.results.as_slice()), (&[1][..], &[0][..]));
        assert_eq!(bind.values.as_slice(), [None, Some(&b"ab"[..])]);
    }

    /// Whether a body can be read.
    type IsRead = fn(&[u8]) -> bool;

    #[test]
    fn every_function_refuses_a_body_that_is_cut_or_goes_on() {
        let bodies: [(&[u8], IsRead); 8] = [
            (b"select 1\0", |body| query(body).is_ok()),
            (b"s\0select 1\0\0\x01\0\0\0\x17", |body| parse(body).is_ok()),
            (b"p\0s\0\0\0\0\x01\0\0\0\x01a\0\0", |body| bind(body, &mut Bind::default()).is_ok()),
            (b"Ss\0", |body| describe(body).is_ok()),
            (b"Pp\0", |body| close(body).is_ok()),
            (b"p\0\0\0\0\0", |body| execute(body).is_ok()),
            (b"reason\0", |body| copy_fail(body).is_ok()),
            (b"SCRAM-SHA-256\0\0\0\0\x01n", |body| sasl_initial(body).is_ok()),
        ];
        for (body, is_read) in bodies {
            assert!(is_read(body), "{body:?}");
            assert!(!is_read(&[body, b"x"].concat()), "{body:?} and more");
            for cut in 0..body.len() {
                assert!(!is_read(&body[..cut]), "{:?}", &body[..cut]);
            }
        }
    }

    #[test]
    fn describe_and_close_name_their_faulty_subtype() {
        assert_eq!(describe(b"Xa\0"), Err(Violation::Subtype { message: "DESCRIBE", kind: b'X' }));
        assert_eq!(close(b"Xa\0"), Err(Violation::Subtype { message: "CLOSE", kind: b'X' }));
    }

    #[test]
    fn bind_refuses_an_unknown_format_code() {
        assert_eq!(
            bind(b"\0\0\0\x01\0\x02\0\0\0\0", &mut Bind::default()).unwrap_err(),
            Violation::Format(2)
        );
    }
}
