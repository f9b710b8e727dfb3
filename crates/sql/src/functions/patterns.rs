//! LIKE, ILIKE and regular expressions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use super::arguments::{give_text, int, text};
use super::{Function, func};
use crate::error::{SqlError, SqlState};
use crate::types::{ArrayBuilder, ArrayRef, Datum, oid};

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
            Some(b'_') if t < text.len() => {
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
    like(text.to_lowercase().as_bytes(), pattern.to_lowercase().as_bytes())
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

/// How many compiled expressions a core keeps.
const CACHED: usize = 64;

thread_local! {
    /// Compiling costs thousands of matches, so each core keeps what it used.
    static COMPILED: RefCell<HashMap<(String, String), Rc<Regex>>> = RefCell::new(HashMap::new());
}

/// PostgreSQL's pattern and flags as a compiled expression.
fn compile(pattern: &str, flags: &str) -> Result<Rc<Regex>> {
    let key = (pattern.to_owned(), flags.to_owned());
    if let Some(found) = COMPILED.with_borrow(|compiled| compiled.get(&key).cloned()) {
        return Ok(found);
    }
    let (mut pattern, mut insensitive, mut newline, mut extended, mut literal) =
        (pattern, false, false, false, false);
    if let Some(rest) = pattern.strip_prefix("***=") {
        (pattern, literal) = (rest, true);
    } else if let Some(rest) = pattern.strip_prefix("***:") {
        pattern = rest;
    }
    for flag in flags.chars() {
        match flag {
            'i' => insensitive = true,
            'c' => insensitive = false,
            'n' | 'm' => newline = true,
            'x' => extended = true,
            'q' => literal = true,
            's' | 'e' | 't' | 'g' => {}
            other => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{other}\""),
                ));
            }
        }
    }
    let translated = if literal { regex::escape(pattern) } else { translate(pattern) };
    let compiled = RegexBuilder::new(&translated)
        .case_insensitive(insensitive)
        .dot_matches_new_line(!newline)
        .multi_line(newline)
        .ignore_whitespace(extended)
        .size_limit(1 << 22)
        .build()
        .map_err(|problem| {
            let what = match problem {
                regex::Error::CompiledTooBig(_) => "regular expression is too complex".to_owned(),
                other => other
                    .to_string()
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim_start_matches("error: ")
                    .to_owned(),
            };
            SqlError::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {what}"))
        })?;
    let compiled = Rc::new(compiled);
    COMPILED.with_borrow_mut(|cache| {
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(key, Rc::clone(&compiled));
    });
    Ok(compiled)
}

/// Rewrites the escapes whose spelling differs: \m \M \y \Y \A \Z, and brackets' quirks.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut characters = pattern.chars().peekable();
    let mut in_bracket = false;
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('m') => out.push_str(r"\b{start}"),
                Some('M') => out.push_str(r"\b{end}"),
                Some('y') => out.push_str(r"\b"),
                Some('Y') => out.push_str(r"\B"),
                Some('Z') => out.push_str(r"\z"),
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            },
            '[' if in_bracket => {
                // A class name stays; a plain bracket inside brackets is a character.
                if matches!(characters.peek(), Some(':')) {
                    out.push('[');
                    for c in characters.by_ref() {
                        out.push(c);
                        if c == ']' {
                            break;
                        }
                    }
                } else {
                    out.push_str("\\[");
                }
            }
            '[' => {
                in_bracket = true;
                out.push('[');
                if characters.peek() == Some(&'^') {
                    out.extend(characters.next());
                }
                if characters.peek() == Some(&']') {
                    characters.next();
                    out.push_str("\\]");
                }
            }
            ']' if in_bracket => {
                in_bracket = false;
                out.push(']');
            }
            '&' | '~' if in_bracket => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Backslash references as the library writes them.
fn translate_replacement(replacement: &str) -> String {
    let mut out = String::new();
    let mut characters = replacement.chars();
    while let Some(c) = characters.next() {
        match c {
            '$' => out.push_str("$$"),
            '\\' => match characters.next() {
                Some('&') => out.push_str("${0}"),
                Some(digit @ '1'..='9') => {
                    out.push_str("${");
                    out.push(digit);
                    out.push('}');
                }
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            other => out.push(other),
        }
    }
    out
}

fn replace<'a>(a: &[Datum<'a>], flags: &str, arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    let regex = compile(text(a[1])?, flags)?;
    let replacement = translate_replacement(text(a[2])?);
    let limit = if flags.contains('g') { 0 } else { 1 };
    Ok(give_text(&regex.replacen(text(a[0])?, limit, replacement.as_str()), arena))
}

fn groups(found: &regex::Captures<'_>) -> Vec<u8> {
    let mut builder = ArrayBuilder::new(TEXT);
    let first = usize::from(found.len() > 1);
    for group in found.iter().skip(first) {
        builder.push(group.map_or(Datum::Null, |group| Datum::Text(group.as_str())));
    }
    builder.finish()
}

fn match_groups<'a>(a: &[Datum<'a>], flags: &str, arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    let regex = compile(text(a[1])?, flags)?;
    Ok(match regex.captures(text(a[0])?) {
        Some(found) => Datum::Array(ArrayRef(arena.alloc_slice_copy(&groups(&found)))),
        None => Datum::Null,
    })
}

fn split_array<'a>(a: &[Datum<'a>], flags: &str, arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    let regex = compile(text(a[1])?, flags)?;
    let mut builder = ArrayBuilder::new(TEXT);
    regex.split(text(a[0])?).for_each(|part| builder.push(Datum::Text(part)));
    Ok(Datum::Array(ArrayRef(arena.alloc_slice_copy(&builder.finish()))))
}

fn substring<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let regex = compile(text(a[1])?, "")?;
    let found = regex.captures(text(a[0])?);
    let group = found.and_then(|found| found.get(usize::from(found.len() > 1)));
    Ok(group.map_or(Datum::Null, |group| Datum::Text(group.as_str())))
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
    matching!("textregexeq", "~", TEXT, |t, p| compile(p, "")?.is_match(t)),
    matching!("nameregexeq", "~", oid::NAME, |t, p| compile(p, "")?.is_match(t)),
    matching!("bpcharregexeq", "~", oid::BPCHAR, |t, p| compile(p, "")?.is_match(t)),
    matching!("textregexne", "!~", TEXT, |t, p| !compile(p, "")?.is_match(t)),
    matching!("nameregexne", "!~", oid::NAME, |t, p| !compile(p, "")?.is_match(t)),
    matching!("texticregexeq", "~*", TEXT, |t, p| compile(p, "i")?.is_match(t)),
    matching!("nameicregexeq", "~*", oid::NAME, |t, p| compile(p, "i")?.is_match(t)),
    matching!("texticregexne", "!~*", TEXT, |t, p| !compile(p, "i")?.is_match(t)),
    matching!("nameicregexne", "!~*", oid::NAME, |t, p| !compile(p, "i")?.is_match(t)),
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
    func("regexp_like", &[TEXT, TEXT], BOOL, |_, a| {
        Ok(Datum::Bool(compile(text(a[1])?, "")?.is_match(text(a[0])?)))
    }),
    func("regexp_like", &[TEXT, TEXT, TEXT], BOOL, |_, a| {
        Ok(Datum::Bool(compile(text(a[1])?, text(a[2])?)?.is_match(text(a[0])?)))
    }),
    func("regexp_count", &[TEXT, TEXT], oid::INT4, |_, a| {
        Ok(Datum::Int4(compile(text(a[1])?, "")?.find_iter(text(a[0])?).count() as i32))
    }),
    func("regexp_replace", &[TEXT, TEXT, TEXT], TEXT, |cx, a| replace(a, "", cx.arena)),
    func("regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, |cx, a| replace(a, text(a[3])?, cx.arena)),
    func("regexp_match", &[TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| match_groups(a, "", cx.arena)),
    func("regexp_match", &[TEXT, TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| {
        match_groups(a, text(a[2])?, cx.arena)
    }),
    func("regexp_split_to_array", &[TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| split_array(a, "", cx.arena)),
    func("regexp_split_to_array", &[TEXT, TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| {
        split_array(a, text(a[2])?, cx.arena)
    }),
    func("substring", &[TEXT, TEXT], TEXT, |_, a| substring(a)),
    func("regexp_substr", &[TEXT, TEXT], TEXT, |_, a| {
        Ok(compile(text(a[1])?, "")?
            .find(text(a[0])?)
            .map_or(Datum::Null, |found| Datum::Text(found.as_str())))
    }),
    func("regexp_instr", &[TEXT, TEXT, oid::INT4], oid::INT4, |_, a| {
        let input = text(a[0])?;
        let start =
            input.char_indices().nth((int(a[2])? - 1).max(0) as usize).map_or(input.len(), |(at, _)| at);
        let found = compile(text(a[1])?, "")?
            .find_at(input, start)
            .map(|found| input[..found.start()].chars().count());
        Ok(Datum::Int4(found.map_or(0, |at| at as i32 + 1)))
    }),
];
