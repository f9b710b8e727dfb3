//! LIKE, ILIKE, SIMILAR TO and the operators of regular expressions (see [`super::regexes`]).

use super::arguments::{give_text, text};
use super::strings::lowercase;
use super::{Function, func, regexes};
use crate::error::{SqlError, SqlState};
use crate::types::{Datum, oid};

type Result<T> = std::result::Result<T, SqlError>;

const TEXT: u32 = oid::TEXT;
const BOOL: u32 = oid::BOOL;

/// Whether the text matches a LIKE pattern. Bytes suffice: `_` skips a whole character, all else compares equal.
fn like(text: &[u8], pattern: &[u8]) -> Result<bool> {
    let (mut t, mut p) = (0, 0);
    // Where to go on when what follows the last `%` fails: the pattern behind it, one character further in the text.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let matched = match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                retry = Some((p, t));
                continue;
            }
            None if t == text.len() => return Ok(true),
            None => false,
            // The rest of the pattern matters only where there is text left for it.
            Some(_) if t == text.len() => return Ok(false),
            Some(b'_') => {
                t += character_length(text, t);
                p += 1;
                true
            }
            Some(b'\\') => {
                let escaped = pattern.get(p + 1).ok_or_else(|| {
                    SqlError::new(
                        SqlState::INVALID_ESCAPE_SEQUENCE,
                        "LIKE pattern must not end with escape character",
                    )
                })?;
                let matched = text.get(t) == Some(escaped);
                if matched {
                    t += 1;
                    p += 2;
                }
                matched
            }
            Some(byte) => {
                let matched = text.get(t) == Some(byte);
                if matched {
                    t += 1;
                    p += 1;
                }
                matched
            }
        };
        if matched {
            continue;
        }
        match retry {
            Some((pattern_at, text_at)) if text_at < text.len() => {
                let next = text_at + character_length(text, text_at);
                retry = Some((pattern_at, next));
                (p, t) = (pattern_at, next);
            }
            _ => return Ok(false),
        }
    }
}

fn character_length(text: &[u8], at: usize) -> usize {
    let mut length = 1;
    while text.get(at + length).is_some_and(|byte| byte & 0xc0 == 0x80) {
        length += 1;
    }
    length
}

fn ilike(text: &str, pattern: &str) -> Result<bool> {
    let fold = |text: &str| text.chars().map(lowercase).collect::<String>();
    like(fold(text).as_bytes(), fold(pattern).as_bytes())
}

/// A pattern with another escape character (or none, when empty) as one with backslashes.
fn like_escape(pattern: &str, escape: &str) -> Result<String> {
    let mut characters = escape.chars();
    let (escape, more) = (characters.next(), characters.next());
    if more.is_some() {
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = String::with_capacity(pattern.len());
    let mut after_escape = false;
    for c in pattern.chars() {
        if Some(c) == escape && !after_escape {
            out.push('\\');
            after_escape = true;
        } else {
            if c == '\\' && !(after_escape && escape == Some('\\')) {
                out.push('\\');
            }
            out.push(c);
            after_escape = false;
        }
    }
    Ok(out)
}

/// SQL's SIMILAR TO pattern as a regular expression over the whole text.
fn similar(pattern: &str, escape: &str) -> Result<String> {
    let mut characters = escape.chars();
    let (escape, more) = (characters.next(), characters.next());
    if more.is_some() {
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = String::from("^(?:");
    let (mut in_bracket, mut escaped) = (false, false);
    for c in pattern.chars() {
        if escaped {
            out.push('\\');
            out.push(c);
            escaped = false;
            continue;
        }
        match c {
            _ if Some(c) == escape => escaped = true,
            '[' | ']' => {
                in_bracket = c == '[';
                out.push(c);
            }
            '\\' => out.push_str("\\\\"),
            _ if in_bracket => out.push(c),
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// A pattern operator in one type's overload.
macro_rules! matching {
    ($name:literal, $operator:literal, $left:expr, |$text:ident, $pattern:ident| $body:expr) => {
        func($name, &[$left, TEXT], BOOL, |_, a| {
            let ($text, $pattern) = (text(a[0])?, text(a[1])?);
            Ok(Datum::Bool($body))
        })
        .op($operator)
    };
}

pub(super) static FUNCTIONS: &[Function] = &[
    matching!("textlike", "~~", TEXT, |t, p| like(t.as_bytes(), p.as_bytes())?),
    matching!("namelike", "~~", oid::NAME, |t, p| like(t.as_bytes(), p.as_bytes())?),
    matching!("bpcharlike", "~~", oid::BPCHAR, |t, p| like(t.as_bytes(), p.as_bytes())?),
    matching!("textnlike", "!~~", TEXT, |t, p| !like(t.as_bytes(), p.as_bytes())?),
    matching!("namenlike", "!~~", oid::NAME, |t, p| !like(t.as_bytes(), p.as_bytes())?),
    matching!("bpcharnlike", "!~~", oid::BPCHAR, |t, p| !like(t.as_bytes(), p.as_bytes())?),
    matching!("texticlike", "~~*", TEXT, |t, p| ilike(t, p)?),
    matching!("nameiclike", "~~*", oid::NAME, |t, p| ilike(t, p)?),
    matching!("bpchariclike", "~~*", oid::BPCHAR, |t, p| ilike(t, p)?),
    matching!("texticnlike", "!~~*", TEXT, |t, p| !ilike(t, p)?),
    matching!("nameicnlike", "!~~*", oid::NAME, |t, p| !ilike(t, p)?),
    matching!("bpcharicnlike", "!~~*", oid::BPCHAR, |t, p| !ilike(t, p)?),
    matching!("textregexeq", "~", TEXT, |t, p| regexes::is_match(t, p, "")?),
    matching!("nameregexeq", "~", oid::NAME, |t, p| regexes::is_match(t, p, "")?),
    matching!("bpcharregexeq", "~", oid::BPCHAR, |t, p| regexes::is_match(t, p, "")?),
    matching!("textregexne", "!~", TEXT, |t, p| !regexes::is_match(t, p, "")?),
    matching!("nameregexne", "!~", oid::NAME, |t, p| !regexes::is_match(t, p, "")?),
    matching!("texticregexeq", "~*", TEXT, |t, p| regexes::is_match(t, p, "i")?),
    matching!("nameicregexeq", "~*", oid::NAME, |t, p| regexes::is_match(t, p, "i")?),
    matching!("texticregexne", "!~*", TEXT, |t, p| !regexes::is_match(t, p, "i")?),
    matching!("nameicregexne", "!~*", oid::NAME, |t, p| !regexes::is_match(t, p, "i")?),
    func("like_escape", &[TEXT, TEXT], TEXT, |cx, a| {
        Ok(give_text(&like_escape(text(a[0])?, text(a[1])?)?, cx.arena))
    }),
    func("similar_to_escape", &[TEXT], TEXT, |cx, a| Ok(give_text(&similar(text(a[0])?, "\\")?, cx.arena))),
    func("similar_to_escape", &[TEXT, TEXT], TEXT, |cx, a| {
        Ok(give_text(&similar(text(a[0])?, text(a[1])?)?, cx.arena))
    }),
    func("like", &[TEXT, TEXT], BOOL, |_, a| {
        Ok(Datum::Bool(like(text(a[0])?.as_bytes(), text(a[1])?.as_bytes())?))
    }),
];
