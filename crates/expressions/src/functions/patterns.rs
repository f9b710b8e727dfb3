//! LIKE, ILIKE, SIMILAR TO and the operators of regular expressions (see [`super::regexes`]).
//!
//! What must hold:
//!
//! 1. The search for parts and the matching step by step agree on every pattern that both take. The
//!    first one is linear, the second has no bound but the product of both lengths.
//! 2. The search for parts takes no pattern with `_` or a dangling escape: only the second one
//!    knows when those matter.
//! 3. `_` matches a whole character. All other characters compare by bytes.
//! 4. The escape character of a LIKE pattern is the backslash. Another one is translated first
//!    ([`like_escape`]).

use std::borrow::Cow;

use super::arguments::{give_text, text};
use super::regexes;
use super::regexes::similar;
use super::strings::lowercase;
use crate::function::{Function, func};
use crate::prefix::Matching;
use values::error::{SqlError, SqlState};
use values::types::{Datum, oid};
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

const TEXT: u32 = oid::TEXT;
const BOOL: u32 = oid::BOOL;

/// Whether the text matches a LIKE pattern.
fn like(text: &str, pattern: &str) -> Result<bool> {
    // Where stepwise matching could take more than some microseconds, the parts between two `%` are
    // searched for in linear time.
    if text.len().saturating_mul(pattern.len()) > QUICK
        && let Some(parts) = plain_parts(pattern)?
    {
        return like_parts(text, &parts);
    }
    like_stepwise(text.as_bytes(), pattern.as_bytes())
}

/// Steps that take some microseconds.
const QUICK: usize = 16 * 1024;

/// The parts of a pattern before, between and after its `%`, with escapes resolved. None for a
/// pattern with `_`, or one that ends with an escape character.
fn plain_parts(pattern: &str) -> Result<Option<Vec<Cow<'_, str>>>> {
    let (mut parts, mut part, mut start) = (Vec::new(), None::<String>, 0);
    let mut characters = pattern.char_indices();
    while let Some((at, c)) = characters.next() {
        work::tick(1)?;
        match c {
            '_' => return Ok(None),
            '\\' => {
                let Some((next, escaped)) = characters.next() else { return Ok(None) };
                let part = part.get_or_insert_default();
                work::push(part, &pattern[start..at])?;
                part.push(escaped);
                start = next + escaped.len_utf8();
            }
            '%' => {
                parts.push(end_part(part.take(), &pattern[start..at])?);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(end_part(part, &pattern[start..])?);
    Ok(Some(parts))
}

fn end_part(begun: Option<String>, rest: &str) -> Result<Cow<'_, str>> {
    let Some(mut part) = begun else { return Ok(Cow::Borrowed(rest)) };
    work::push(&mut part, rest)?;
    Ok(Cow::Owned(part))
}

/// Whether the text begins with the first part, ends with the last, and has the other parts between
/// them in order. The first place of each part is as good as any other.
fn like_parts(text: &str, parts: &[Cow<'_, str>]) -> Result<bool> {
    let Some((last, others)) = parts.split_last() else { return Ok(false) };
    let Some((first, middle)) = others.split_first() else {
        return work::equal(text.as_bytes(), last.as_bytes());
    };
    let (bytes, end) = (text.as_bytes(), text.len().saturating_sub(last.len()));
    if first.len() + last.len() > text.len()
        || !work::equal(&bytes[..first.len()], first.as_bytes())?
        || !work::equal(&bytes[end..], last.as_bytes())?
    {
        return Ok(false);
    }
    let mut rest = &text[first.len()..end];
    for part in middle {
        let Some(at) = work::find(rest, part)? else { return Ok(false) };
        rest = &rest[at + part.len()..];
        work::tick(at + part.len())?;
    }
    Ok(true)
}

/// As [`like`], step by step. Bytes suffice: `_` skips a whole character, all other characters
/// compare equal. The part between two `%` is tried at each position of the text.
fn like_stepwise(text: &[u8], pattern: &[u8]) -> Result<bool> {
    let counted = text.len().saturating_mul(pattern.len()) > QUICK;
    let (mut t, mut p) = (0, 0);
    // The position to retry from when the part after the last `%` fails: the pattern after it, and
    // the text one character further.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if counted {
            work::tick(1)?;
        }
        let matched = match pattern.get(p) {
            Some(b'%') => {
                p += 1;
                retry = Some((p, t));
                continue;
            }
            None if t == text.len() => return Ok(true),
            None => false,
            // The rest of the pattern matters only while text is left.
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
    let fold = |text: &str| work::map_characters(text, lowercase);
    like(&fold(text)?, &fold(pattern)?)
}

/// A pattern with another escape character, or none when `escape` is empty, as a pattern with
/// backslashes.
fn like_escape(pattern: &str, escape: &str) -> Result<String> {
    let escape = similar::escape_character(escape)?;
    let mut out = String::with_capacity(pattern.len());
    let mut after_escape = false;
    for c in pattern.chars() {
        work::tick(1)?;
        if Some(c) == escape && !after_escape {
            out.push('\\');
            after_escape = true;
        } else {
            if c == '\\' && !after_escape {
                out.push('\\');
            }
            out.push(c);
            after_escape = false;
        }
    }
    Ok(out)
}

/// The overload of a pattern operator for one type.
macro_rules! matching {
    ($name:literal, $operator:literal, $left:expr, |$text:ident, $pattern:ident| $body:expr) => {
        func($name, &[$left, TEXT], BOOL, |_, a| {
            let ($text, $pattern) = (text(a[0])?, text(a[1])?);
            Ok(Datum::Bool($body))
        })
        .op($operator)
    };
}

/// As `matching!`, for regular expressions.
macro_rules! regexp {
    ($name:literal, $operator:literal, $left:expr, $flags:literal, |$found:ident| $body:expr) => {
        func($name, &[$left, TEXT], BOOL, |cx, a| {
            regexes::search(cx, a, ($flags, false), |regex, a, _| {
                let $found = regex.is_match(text(a[0])?);
                Ok(Datum::Bool($body))
            })
        })
        .op($operator)
    };
}

pub(super) static FUNCTIONS: &[Function] = &[
    matching!("textlike", "~~", TEXT, |t, p| like(t, p)?).matching(Matching::Like),
    matching!("namelike", "~~", oid::NAME, |t, p| like(t, p)?),
    matching!("bpcharlike", "~~", oid::BPCHAR, |t, p| like(t, p)?),
    matching!("textnlike", "!~~", TEXT, |t, p| !like(t, p)?),
    matching!("namenlike", "!~~", oid::NAME, |t, p| !like(t, p)?),
    matching!("bpcharnlike", "!~~", oid::BPCHAR, |t, p| !like(t, p)?),
    matching!("texticlike", "~~*", TEXT, |t, p| ilike(t, p)?),
    matching!("nameiclike", "~~*", oid::NAME, |t, p| ilike(t, p)?),
    matching!("bpchariclike", "~~*", oid::BPCHAR, |t, p| ilike(t, p)?),
    matching!("texticnlike", "!~~*", TEXT, |t, p| !ilike(t, p)?),
    matching!("nameicnlike", "!~~*", oid::NAME, |t, p| !ilike(t, p)?),
    matching!("bpcharicnlike", "!~~*", oid::BPCHAR, |t, p| !ilike(t, p)?),
    regexp!("textregexeq", "~", TEXT, "", |found| found).matching(Matching::Regex),
    regexp!("nameregexeq", "~", oid::NAME, "", |found| found),
    regexp!("bpcharregexeq", "~", oid::BPCHAR, "", |found| found),
    regexp!("textregexne", "!~", TEXT, "", |found| !found),
    regexp!("nameregexne", "!~", oid::NAME, "", |found| !found),
    regexp!("bpcharregexne", "!~", oid::BPCHAR, "", |found| !found),
    regexp!("texticregexeq", "~*", TEXT, "i", |found| found),
    regexp!("nameicregexeq", "~*", oid::NAME, "i", |found| found),
    regexp!("bpcharicregexeq", "~*", oid::BPCHAR, "i", |found| found),
    regexp!("texticregexne", "!~*", TEXT, "i", |found| !found),
    regexp!("nameicregexne", "!~*", oid::NAME, "i", |found| !found),
    regexp!("bpcharicregexne", "!~*", oid::BPCHAR, "i", |found| !found),
    func("like_escape", &[TEXT, TEXT], TEXT, |cx, a| {
        give_text(&like_escape(text(a[0])?, text(a[1])?)?, cx.arena)
    }),
    func("similar_to_escape", &[TEXT], TEXT, |cx, a| {
        give_text(&similar::whole(text(a[0])?, "\\")?, cx.arena)
    }),
    func("similar_to_escape", &[TEXT, TEXT], TEXT, |cx, a| {
        give_text(&similar::whole(text(a[0])?, text(a[1])?)?, cx.arena)
    }),
    func("like", &[TEXT, TEXT], BOOL, |_, a| Ok(Datum::Bool(like(text(a[0])?, text(a[1])?)?)))
        .matching(Matching::Like),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Matches every pattern of some pieces with every text of some letters, both ways.
    #[test]
    fn a_search_for_parts_agrees_with_matching_step_by_step() {
        let pieces = ["", "%", "a", "ab", "b", "\\%", "\\\\", "\u{e9}", "%%"];
        let letters = ["a", "b", "%", "\\", "\u{e9}"];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer: Vec<String> =
                texts.iter().flat_map(|text| letters.map(|letter| format!("{text}{letter}"))).collect();
            texts.extend(longer);
        }
        let mut patterns = vec![String::new()];
        for _ in 0..3 {
            patterns =
                patterns.iter().flat_map(|start| pieces.map(|piece| format!("{start}{piece}"))).collect();
        }
        for pattern in &patterns {
            let parts = plain_parts(pattern).unwrap().unwrap();
            for text in texts.iter().step_by(3) {
                let expected = like_stepwise(text.as_bytes(), pattern.as_bytes()).unwrap();
                assert_eq!(like_parts(text, &parts).unwrap(), expected, "{text} LIKE {pattern}");
            }
        }
        assert!(plain_parts("a_").unwrap().is_none());
        assert!(plain_parts("a\\").unwrap().is_none());
    }
}
