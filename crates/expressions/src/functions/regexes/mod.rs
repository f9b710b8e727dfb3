//! Regular expressions and the functions over them.
//!
//! Several matches may begin at the first possible position. PostgreSQL returns the longest of
//! them, or the shortest where the pattern prefers that. The library returns the one that its
//! alternatives and quantifiers find first. So the library finds the beginning, and a second engine
//! (`PikeVM`, which follows all paths at once) finds the end. The library then finds the groups
//! within those bounds.
//!
//! The library searches in time linear in the text's length times the pattern's, but without a safe
//! point. So a long text, or a pattern with large counts, is searched beside the core, on a copy:
//! [`search`].

mod compiled;
pub(super) mod similar;
mod translate;

use bumpalo::Bump;

use self::compiled::{Compiled, Found, is_heavy, weight};
use self::translate::invalid;
use super::arguments::{give_text, int, name, text};
use super::text_building::bounded;
use crate::context::EvalContext;
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::types::{ArrayBuilder, Datum, Value, oid};
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

const TEXT: u32 = oid::TEXT;
const BOOL: u32 = oid::BOOL;
const I4: u32 = oid::INT4;

/// The longest text that is searched on the core, in bytes.
const SHORT_TEXT: usize = 32 * 1024;
/// Steps of a search that take about a millisecond.
const SHORT_SEARCH: usize = 1 << 20;
/// The longest pattern in bytes. A compiled expression takes several bytes for each byte of the
/// pattern.
const LONGEST_PATTERN: usize = 1 << 20;

/// Refuses a pattern that is too long to compile, before it is copied.
fn check_length(pattern: &str) -> Result<()> {
    if pattern.len() > LONGEST_PATTERN { Err(invalid("regular expression is too complex")) } else { Ok(()) }
}

/// Whether a text is searched for a pattern on the core.
fn is_short(text: &str, pattern: &str) -> Result<bool> {
    Ok(text.len() <= SHORT_TEXT && text.len().saturating_mul(weight(pattern)?) <= SHORT_SEARCH)
}

/// The part of a function that runs with the compiled pattern.
pub(super) type Search = for<'a> fn(&Compiled, &[Datum<'a>], &'a Bump) -> Result<Datum<'a>>;

/// Calls a function of a text and a pattern. A short search runs on the core; a long one on copies
/// beside it, while the fiber waits interruptibly. `asks_ends` is set when the function needs a
/// match's end or groups.
pub(super) fn search<'a>(
    cx: &mut EvalContext<'a, '_>,
    a: &[Datum<'a>],
    (flags, asks_ends): (&str, bool),
    search: Search,
) -> Result<Datum<'a>> {
    let (searched, pattern) = (text(a[0])?, text(a[1])?);
    check_length(pattern)?;
    compiled::with(pattern, flags, |regex| {
        if is_short(searched, pattern)? {
            return search(regex, a, cx.arena);
        }
        if asks_ends {
            regex.prepare_ends()?;
        }
        let sent = regex.to_send();
        on_copies(cx, a, move |a, arena| search(&sent.received(), a, arena))
    })
}

/// Calls `code` with copies of a function's arguments on a thread beside the core.
fn on_copies<'a>(
    cx: &mut EvalContext<'a, '_>,
    a: &[Datum<'a>],
    code: impl for<'b> FnOnce(&[Datum<'b>], &'b Bump) -> Result<Datum<'b>> + Clone + Send + 'static,
) -> Result<Datum<'a>> {
    let found = work::beside(|| {
        let mut values = Vec::with_capacity(a.len());
        for value in a {
            values.push(match value {
                Datum::Text(text) | Datum::Padded(text) => {
                    let mut copy = String::new();
                    work::push(&mut copy, text)?;
                    Value::Text(copy.into_boxed_str())
                }
                other => other.to_value()?,
            });
        }
        let code = code.clone();
        Ok(move || {
            let arena = Bump::new();
            let arguments: Vec<Datum<'_>> = values.iter().map(Value::datum).collect();
            code(&arguments, &arena).and_then(|found| found.to_value())
        })
    });
    found?.datum().copy_in(cx.arena)
}

impl Compiled {
    /// Calls `each` with the matches from a position on until it returns false. An empty match may
    /// follow any other.
    fn each(&self, text: &str, mut from: usize, mut each: impl FnMut(Found) -> Result<bool>) -> Result<()> {
        while from <= text.len()
            && let Some(found) = self.captures(text, from)?
        {
            let (start, end) = found[0].unwrap_or((from, from));
            // Finding the end of a short match may still have read the rest of the text.
            work::tick(SHORT_TEXT / 16)?;
            from =
                if start == end { end + text[end..].chars().next().map_or(1, char::len_utf8) } else { end };
            if !each(found)? {
                break;
            }
        }
        Ok(())
    }
}

fn no_global(function: &str, flags: &str) -> Result<()> {
    if flags.contains('g') {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("{function}() does not support the \"global\" option"),
        ));
    }
    Ok(())
}

/// Appends a replacement: `\1` to `\9` are groups, `\&` the match.
fn write_replacement(out: &mut String, replacement: &str, text: &str, found: &Found) -> Result<()> {
    let group = |out: &mut String, number: usize| match found.get(number) {
        Some(Some((start, end))) => {
            bounded(out.len() + (end - start))?;
            work::push(out, &text[*start..*end])
        }
        _ => Ok(()),
    };
    let mut characters = replacement.chars().peekable();
    while let Some(c) = characters.next() {
        work::tick(1)?;
        match (c, characters.peek().copied()) {
            ('\\', Some('&')) => group(out, 0)?,
            ('\\', Some(digit @ '1'..='9')) => group(out, digit as usize - '0' as usize)?,
            ('\\', Some('\\')) => out.push('\\'),
            _ => {
                out.push(c);
                continue;
            }
        }
        characters.next();
    }
    Ok(())
}

/// The flags of a replacement, without the one that replaces all matches.
fn replacing(flags: &str) -> Result<String> {
    if let Some(digit) = flags.chars().next().filter(char::is_ascii_digit) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid regular expression option: \"{digit}\""),
        )
        .with_hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        ));
    }
    Ok(flags.replace('g', ""))
}

fn replace<'a>(regex: &Compiled, a: &[Datum<'a>], arena: &'a Bump) -> Result<Datum<'a>> {
    let all = a.get(3).map_or(Ok(false), |flags| Ok(name(*flags)?.contains('g')))?;
    let (input, replacement) = (text(a[0])?, text(a[2])?);
    let (mut out, mut copied) = (String::new(), 0);
    regex.each(input, 0, |found| {
        let (start, end) = found[0].unwrap_or((copied, copied));
        work::push(&mut out, &input[copied..start])?;
        write_replacement(&mut out, replacement, input, &found)?;
        copied = end;
        bounded(out.len())?;
        Ok(all)
    })?;
    work::push(&mut out, &input[copied..])?;
    give_text(&out, arena)
}

fn match_groups<'a>(regex: &Compiled, a: &[Datum<'a>], arena: &'a Bump) -> Result<Datum<'a>> {
    let input = text(a[0])?;
    let Some(found) = regex.captures(input, 0)? else { return Ok(Datum::Null) };
    let mut builder = ArrayBuilder::new(TEXT);
    for group in found.iter().skip(usize::from(found.len() > 1)) {
        builder.push(group.map_or(Datum::Null, |(start, end)| Datum::Text(&input[start..end])))?;
    }
    builder.array_in(arena)
}

/// The parts of the text between matches. An empty match at an end of the text or after another
/// match splits nothing.
fn split_array<'a>(regex: &Compiled, a: &[Datum<'a>], arena: &'a Bump) -> Result<Datum<'a>> {
    let input = text(a[0])?;
    let (mut builder, mut begun) = (ArrayBuilder::new(TEXT), 0);
    let mut last_end = 0;
    regex.each(input, 0, |found| {
        let (start, end) = found[0].unwrap_or_default();
        if start < input.len() && end > last_end {
            builder.push(Datum::Text(&input[begun..start]))?;
            begun = end;
        }
        last_end = end;
        Ok(true)
    })?;
    builder.push(Datum::Text(&input[begun..]))?;
    builder.array_in(arena)
}

/// The first group of the first match, or the match without groups.
fn substring<'a>(regex: &Compiled, a: &[Datum<'a>], _: &'a Bump) -> Result<Datum<'a>> {
    let input = text(a[0])?;
    let found = regex.captures(input, 0)?;
    let group = found.and_then(|found| found[usize::from(found.len() > 1)]);
    Ok(group.map_or(Datum::Null, |(start, end)| Datum::Text(&input[start..end])))
}

/// Refuses a start position that no text has.
fn check_start(start: Datum<'_>) -> Result<()> {
    let number = int(start)?;
    if number < 1 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"start\": {number}"),
        ));
    }
    Ok(())
}

/// The byte offset at which a search starts. The argument counts characters from 1. The position
/// after the last character gives the text's length, a later one its length plus one.
fn start(a: &[Datum<'_>]) -> Result<usize> {
    let input = text(a[0])?;
    let number = a.get(2).map_or(Ok(1), |number| int(*number))?;
    let mut places = input.char_indices().map(|(at, _)| at).chain([input.len()]);
    Ok(places.nth(number as usize - 1).unwrap_or(input.len() + 1))
}

fn count<'a>(regex: &Compiled, a: &[Datum<'a>], _: &'a Bump) -> Result<Datum<'a>> {
    let mut count = 0;
    regex.each(text(a[0])?, start(a)?, |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(Datum::Int4(count))
}

fn position<'a>(regex: &Compiled, a: &[Datum<'a>], _: &'a Bump) -> Result<Datum<'a>> {
    let (input, start) = (text(a[0])?, start(a)?);
    if start > input.len() {
        return Ok(Datum::Int4(0));
    }
    let found = regex.find(input, start)?;
    Ok(Datum::Int4(found.map_or(0, |(start, _)| input[..start].chars().count() as i32 + 1)))
}

fn is_match<'a>(regex: &Compiled, a: &[Datum<'a>], _: &'a Bump) -> Result<Datum<'a>> {
    Ok(Datum::Bool(regex.is_match(text(a[0])?)))
}

/// SUBSTRING(text SIMILAR pattern ESCAPE character). Each call compiles its pattern.
fn similar_substring<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    fn found<'a>(a: &[Datum<'a>], _: &'a Bump) -> Result<Datum<'a>> {
        let found = similar::substring(text(a[0])?, text(a[1])?, text(a[2])?)?;
        Ok(found.map_or(Datum::Null, Datum::Text))
    }
    let (searched, pattern) = (text(a[0])?, text(a[1])?);
    check_length(pattern)?;
    let is_quick = is_short(searched, pattern)? && !is_heavy(pattern, "")?;
    let arena = cx.arena;
    let here = if is_quick { runtime::budget::whole_within(SHORT_SEARCH, || found(a, arena)) } else { None };
    // No result means that the search took long or lacks memory that others have reserved.
    here.unwrap_or_else(|| on_copies(cx, a, found))
}

/// A function of a text, a pattern and more that needs matches.
macro_rules! regexp {
    ($name:literal, $arguments:expr, $result:expr, $search:expr) => {
        func($name, $arguments, $result, |cx, a| search(cx, a, ("", true), $search))
    };
    ($name:literal, $arguments:expr, $result:expr, |$a:ident| $flags:expr, $search:expr) => {
        func($name, $arguments, $result, |cx, $a| search(cx, $a, (&$flags, true), $search))
    };
}

/// The flags in an argument of a function for which the flag `g` is invalid.
fn flags<'a>(function: &str, flags: Datum<'a>) -> Result<&'a str> {
    let flags = name(flags)?;
    no_global(function, flags)?;
    Ok(flags)
}

pub(super) static FUNCTIONS: &[Function] = &[
    func("regexp_like", &[TEXT, TEXT], BOOL, |cx, a| search(cx, a, ("", false), is_match)),
    func("regexp_like", &[TEXT, TEXT, TEXT], BOOL, |cx, a| {
        search(cx, a, (flags("regexp_like", a[2])?, false), is_match)
    }),
    regexp!("regexp_count", &[TEXT, TEXT], I4, count),
    func("regexp_count", &[TEXT, TEXT, I4], I4, |cx, a| {
        check_start(a[2])?;
        search(cx, a, ("", true), count)
    }),
    func("regexp_count", &[TEXT, TEXT, I4, TEXT], I4, |cx, a| {
        check_start(a[2])?;
        search(cx, a, (flags("regexp_count", a[3])?, true), count)
    }),
    regexp!("regexp_replace", &[TEXT, TEXT, TEXT], TEXT, replace),
    regexp!("regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, |a| replacing(name(a[3])?)?, replace),
    regexp!("regexp_match", &[TEXT, TEXT], oid::TEXT_ARRAY, match_groups),
    regexp!(
        "regexp_match",
        &[TEXT, TEXT, TEXT],
        oid::TEXT_ARRAY,
        |a| flags("regexp_match", a[2])?,
        match_groups
    ),
    regexp!("regexp_split_to_array", &[TEXT, TEXT], oid::TEXT_ARRAY, split_array),
    regexp!(
        "regexp_split_to_array",
        &[TEXT, TEXT, TEXT],
        oid::TEXT_ARRAY,
        |a| flags("regexp_split_to_array", a[2])?,
        split_array
    ),
    regexp!("substring", &[TEXT, TEXT], TEXT, substring),
    func("substring", &[TEXT, TEXT, TEXT], TEXT, similar_substring),
    regexp!("regexp_substr", &[TEXT, TEXT], TEXT, |regex, a, _| {
        let input = text(a[0])?;
        let found = regex.find(input, 0)?;
        Ok(found.map_or(Datum::Null, |(start, end)| Datum::Text(&input[start..end])))
    }),
    regexp!("regexp_instr", &[TEXT, TEXT], I4, position),
    func("regexp_instr", &[TEXT, TEXT, I4], I4, |cx, a| {
        check_start(a[2])?;
        search(cx, a, ("", true), position)
    }),
];
