//! Regular expressions and the functions over them.
//!
//! PostgreSQL gives, of the matches that begin first, the longest (or the shortest, where the pattern prefers that); the
//! library gives the one that its alternatives and quantifiers find first. So the library finds where a match begins, and
//! a second engine ([`PikeVM`], which follows all ways at once) where it ends. Groups are then found within those bounds,
//! as the library finds them.
//!
//! The library searches in time linear in the text's length times the pattern's, but without a safe point. So a long text,
//! or a pattern with large counts, is searched beside the core, on a copy: [`beside`]. A pattern that takes long to compile
//! is compiled beside the core, once, and searched for on it: [`compile`].

pub(super) mod similar;
mod translate;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};
use regex_automata::nfa::thompson;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::{Anchored, Input, MatchKind};

use self::translate::{invalid, translate};
use super::arguments::{give_text, int, name, text};
use super::strings::bounded;
use super::{Code, Function, func};
use crate::error::{SqlError, SqlState};
use crate::expr::{EvalContext, NoSession};
use crate::types::{ArrayBuilder, Datum, Value, oid};
use crate::work;

type Result<T> = std::result::Result<T, SqlError>;

const TEXT: u32 = oid::TEXT;
const BOOL: u32 = oid::BOOL;
const I4: u32 = oid::INT4;

/// How many compiled expressions a core keeps.
const CACHED: usize = 64;
/// As many a thread beside the cores keeps.
const CACHED_BESIDE: usize = 4;
/// The longest text that is searched on the core.
const SHORT_TEXT: usize = 32 * 1024;
/// The largest weight of a pattern that is compiled on the core: characters, at about half a microsecond each.
const SHORT_PATTERN: usize = 2048;
/// The time that compiling a class takes, in characters.
const CLASS: usize = 30;
/// The same for a class with the letters of all scripts.
const WIDE_CLASS: usize = 1000;
/// The same for a letter of either case.
const FOLDED: usize = 8;
/// Steps of a search that take about a millisecond.
const SHORT_SEARCH: usize = 1 << 20;
/// The most memory a compiled expression may take.
const SIZE: usize = 1 << 22;

/// The longest pattern in bytes. A compiled expression takes several bytes for each of its pattern's.
const LONGEST_PATTERN: usize = 1 << 20;

/// The engine that finds ends, and what it keeps from search to search.
type Ends = (PikeVM, RefCell<thompson::pikevm::Cache>);

/// A compiled pattern.
struct Compiled {
    regex: Regex,
    translated: String,
    shortest: bool,
    /// Finds ends; made when one is first asked for.
    ends: OnceCell<Ends>,
    /// The pattern that must match up to the end of the text.
    whole: OnceCell<Regex>,
}

/// Where a match and its groups are; the match itself is the first of them.
type Found = Vec<Option<(usize, usize)>>;

thread_local! {
    /// Compiling costs thousands of matches, so each core keeps what it used.
    static COMPILED: RefCell<HashMap<(String, String), Rc<Compiled>>> = RefCell::new(HashMap::new());
}

fn build(pattern: &str) -> Result<Regex> {
    RegexBuilder::new(pattern).size_limit(SIZE).build().map_err(|problem| match problem {
        regex::Error::CompiledTooBig(_) => invalid("regular expression is too complex"),
        other => {
            let what = other.to_string();
            invalid(what.lines().last().unwrap_or_default().trim_start_matches("error: "))
        }
    })
}

/// A measure of a pattern's states: its length times what its counts multiply it by.
fn weight(pattern: &str) -> Result<usize> {
    weighed(pattern, pattern.len())
}

fn weighed(pattern: &str, length: usize) -> Result<usize> {
    let mut factor = 1_usize;
    for piece in work::pieces(pattern) {
        for count in piece?.split(['{', ',']).skip(1) {
            let digits = &count[..count.bytes().take_while(u8::is_ascii_digit).count()];
            factor = factor.saturating_mul(digits.parse().unwrap_or(1).max(1));
        }
    }
    Ok(length.saturating_mul(factor))
}

/// Whether a pattern may take more than about a millisecond to compile.
fn is_heavy(pattern: &str, flags: &str) -> Result<bool> {
    let mut length = pattern.len();
    for pair in pattern.as_bytes().windows(2) {
        work::tick(1)?;
        length += match pair {
            [b'\\', b'w' | b'W'] | [b'[', b':'] => WIDE_CLASS,
            [b'\\' | b'[', _] => CLASS,
            _ => 0,
        };
    }
    if flags.contains('i') || pattern.starts_with("(?") || pattern.starts_with("***") {
        length *= FOLDED;
    }
    Ok(weighed(pattern, length)? > SHORT_PATTERN)
}

/// Refuses a pattern that is too long to be compiled within [`SIZE`], before it is copied.
fn check_length(pattern: &str) -> Result<()> {
    if pattern.len() > LONGEST_PATTERN { Err(invalid("regular expression is too complex")) } else { Ok(()) }
}

/// Calls a function of a text and a pattern: on the core where the search is short, otherwise on copies beside it, where
/// the fiber waits interruptibly. `code` does not look at its session.
pub(super) fn beside<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>], code: Code) -> Result<Datum<'a>> {
    let (length, pattern) = (text(a[0])?.len(), text(a[1])?);
    check_length(pattern)?;
    if length <= SHORT_TEXT && length.saturating_mul(weight(pattern)?) <= SHORT_SEARCH {
        return code(cx, a);
    }
    on_copies(cx, a, code)
}

/// As [`beside`] for code that compiles its pattern for each call.
fn compiled_beside<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>], code: Code) -> Result<Datum<'a>> {
    check_length(text(a[1])?)?;
    if is_heavy(text(a[1])?, "")? { on_copies(cx, a, code) } else { beside(cx, a, code) }
}

fn on_copies<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>], code: Code) -> Result<Datum<'a>> {
    let length = text(a[0])?.len() + text(a[1])?.len();
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
    let found = runtime::aside::run_given(length, move || {
        let (arena, session) = (bumpalo::Bump::new(), NoSession::default());
        let arguments: Vec<Datum<'_>> = values.iter().map(Value::datum).collect();
        let mut context = EvalContext { registers: &[], params: &[], arena: &arena, session: &session };
        code(&mut context, &arguments).and_then(|found| found.to_value())
    });
    found.map_err(work::stopped)??.datum().copy_in(cx.arena)
}

/// PostgreSQL's pattern and flags, compiled.
fn compile(pattern: &str, flags: &str) -> Result<Rc<Compiled>> {
    let key = (pattern.to_owned(), flags.to_owned());
    if let Some(found) = COMPILED.with_borrow(|compiled| compiled.get(&key).cloned()) {
        return Ok(found);
    }
    let on_core = runtime::try_core().is_some();
    let compiled = match on_core && is_heavy(pattern, flags)? {
        true => {
            let (pattern, flags) = key.clone();
            let made = move || {
                let made = Compiled::new(&pattern, &flags)?;
                // The core would hold still for these, too. An error comes back where they are needed.
                let _ = (made.ends(), made.whole());
                Ok(made)
            };
            runtime::aside::run_given(key.0.len(), made).map_err(work::stopped)??
        }
        false => Compiled::new(pattern, flags)?,
    };
    let compiled = Rc::new(compiled);
    let full = if on_core { CACHED } else { CACHED_BESIDE };
    // One goes for each that comes: dropping all at once takes tens of milliseconds.
    let gone = COMPILED.with_borrow_mut(|cache| {
        let gone = cache.keys().next().filter(|_| cache.len() >= full).cloned();
        let gone = gone.and_then(|key| cache.remove(&key));
        cache.insert(key, Rc::clone(&compiled));
        gone
    });
    drop(gone);
    Ok(compiled)
}

/// Whether a text matches a pattern.
pub(super) fn is_match(text: &str, pattern: &str, flags: &str) -> Result<bool> {
    Ok(compile(pattern, flags)?.regex.is_match(text))
}

impl Compiled {
    fn new(pattern: &str, flags: &str) -> Result<Compiled> {
        let translated = translate(pattern, flags)?;
        Ok(Compiled {
            regex: build(&translated.pattern)?,
            translated: translated.pattern,
            shortest: translated.shortest,
            ends: OnceCell::new(),
            whole: OnceCell::new(),
        })
    }

    fn ends(&self) -> Result<&Ends> {
        if let Some(made) = self.ends.get() {
            return Ok(made);
        }
        let engine = PikeVM::builder()
            .configure(PikeVM::config().match_kind(MatchKind::All))
            .thompson(thompson::Config::new().nfa_size_limit(Some(SIZE)))
            .build(&self.translated)
            .map_err(|_| invalid("regular expression is too complex"))?;
        let cache = RefCell::new(engine.create_cache());
        Ok(self.ends.get_or_init(|| (engine, cache)))
    }

    fn whole(&self) -> Result<&Regex> {
        if let Some(made) = self.whole.get() {
            return Ok(made);
        }
        let made = build(&format!("(?:{})\\z", self.translated))?;
        Ok(self.whole.get_or_init(|| made))
    }

    /// Where the match that begins at `start` ends.
    fn end(&self, text: &str, start: usize) -> Result<usize> {
        let (engine, cache) = self.ends()?;
        let input = Input::new(text).range(start..).anchored(Anchored::Yes).earliest(self.shortest);
        let found = engine.find(&mut cache.borrow_mut(), input);
        found.map(|found| found.end()).ok_or_else(|| SqlError::internal("a match has no end"))
    }

    /// The first match at or behind a place, without its groups.
    fn find(&self, text: &str, from: usize) -> Result<Option<(usize, usize)>> {
        match self.regex.find_at(text, from) {
            None => Ok(None),
            Some(found) => Ok(Some((found.start(), self.end(text, found.start())?))),
        }
    }

    /// The first match at or behind a place.
    fn captures(&self, text: &str, from: usize) -> Result<Option<Found>> {
        let Some(found) = self.regex.captures_at(text, from) else { return Ok(None) };
        let spans = |found: &regex::Captures<'_>| -> Found {
            found.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
        };
        let mut groups = spans(&found);
        let (start, end) = groups[0].unwrap_or((from, from));
        let wanted = self.end(text, start)?;
        if wanted != end {
            if let Some(found) = self.whole()?.captures_at(&text[..wanted], start) {
                groups = spans(&found);
            }
            groups[0] = Some((start, wanted));
        }
        Ok(Some(groups))
    }

    /// Goes through the matches from a place on until `each` says false. An empty match may follow any other.
    fn each(&self, text: &str, mut from: usize, mut each: impl FnMut(Found) -> Result<bool>) -> Result<()> {
        while from <= text.len()
            && let Some(found) = self.captures(text, from)?
        {
            let (start, end) = found[0].unwrap_or((from, from));
            // However short it is, finding where it ends may have read the rest of the text.
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

/// Writes a replacement: `\1` to `\9` are groups, `\&` the match.
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

fn replace<'a>(a: &[Datum<'a>], flags: &str, arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    let all = flags.contains('g');
    if let Some(digit) = flags.chars().next().filter(char::is_ascii_digit) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid regular expression option: \"{digit}\""),
        )
        .with_hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        ));
    }
    let regex = compile(text(a[1])?, &flags.replace('g', ""))?;
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

fn match_groups<'a>(a: &[Datum<'a>], flags: &str, arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    no_global("regexp_match", flags)?;
    let input = text(a[0])?;
    let Some(found) = compile(text(a[1])?, flags)?.captures(input, 0)? else { return Ok(Datum::Null) };
    let mut builder = ArrayBuilder::new(TEXT);
    for group in found.iter().skip(usize::from(found.len() > 1)) {
        builder.push(group.map_or(Datum::Null, |(start, end)| Datum::Text(&input[start..end])))?;
    }
    builder.array_in(arena)
}

/// The text between matches. Empty matches at the text's ends and behind another match split nothing.
fn split_array<'a>(
    function: &str,
    a: &[Datum<'a>],
    flags: &str,
    arena: &'a bumpalo::Bump,
) -> Result<Datum<'a>> {
    no_global(function, flags)?;
    let input = text(a[0])?;
    let (mut builder, mut begun) = (ArrayBuilder::new(TEXT), 0);
    let mut last_end = 0;
    compile(text(a[1])?, flags)?.each(input, 0, |found| {
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

/// The first group of the first match, or the match.
fn substring<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let input = text(a[0])?;
    let found = compile(text(a[1])?, "")?.captures(input, 0)?;
    let group = found.and_then(|found| found[usize::from(found.len() > 1)]);
    Ok(group.map_or(Datum::Null, |(start, end)| Datum::Text(&input[start..end])))
}

/// The byte where a character is, counted from 1; the text's end and one more for one behind it.
fn character(input: &str, number: i64) -> Result<usize> {
    if number < 1 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid value for parameter \"start\": {number}"),
        ));
    }
    let mut places = input.char_indices().map(|(at, _)| at).chain([input.len()]);
    Ok(places.nth(number as usize - 1).unwrap_or(input.len() + 1))
}

fn count(a: &[Datum<'_>], start: i64, flags: &str) -> Result<i32> {
    no_global("regexp_count", flags)?;
    let input = text(a[0])?;
    let mut count = 0;
    compile(text(a[1])?, flags)?.each(input, character(input, start)?, |_| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}

fn position(a: &[Datum<'_>], start: i64) -> Result<i32> {
    let input = text(a[0])?;
    let start = character(input, start)?;
    if start > input.len() {
        return Ok(0);
    }
    let found = compile(text(a[1])?, "")?.find(input, start)?;
    Ok(found.map_or(0, |(start, _)| input[..start].chars().count() as i32 + 1))
}

/// A function of a text, a pattern and more.
macro_rules! regexp {
    ($name:literal, $arguments:expr, $result:expr, $code:expr) => {
        func($name, $arguments, $result, |cx, a| beside(cx, a, $code))
    };
}

pub(super) static FUNCTIONS: &[Function] = &[
    regexp!("regexp_like", &[TEXT, TEXT], BOOL, |_, a| Ok(Datum::Bool(is_match(
        text(a[0])?,
        text(a[1])?,
        ""
    )?))),
    regexp!("regexp_like", &[TEXT, TEXT, TEXT], BOOL, |_, a| {
        no_global("regexp_like", name(a[2])?)?;
        Ok(Datum::Bool(is_match(text(a[0])?, text(a[1])?, name(a[2])?)?))
    }),
    regexp!("regexp_count", &[TEXT, TEXT], I4, |_, a| Ok(Datum::Int4(count(a, 1, "")?))),
    regexp!("regexp_count", &[TEXT, TEXT, I4], I4, |_, a| Ok(Datum::Int4(count(a, int(a[2])?, "")?))),
    regexp!("regexp_count", &[TEXT, TEXT, I4, TEXT], I4, |_, a| {
        Ok(Datum::Int4(count(a, int(a[2])?, name(a[3])?)?))
    }),
    regexp!("regexp_replace", &[TEXT, TEXT, TEXT], TEXT, |cx, a| replace(a, "", cx.arena)),
    regexp!("regexp_replace", &[TEXT, TEXT, TEXT, TEXT], TEXT, |cx, a| replace(a, name(a[3])?, cx.arena)),
    regexp!("regexp_match", &[TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| match_groups(a, "", cx.arena)),
    regexp!("regexp_match", &[TEXT, TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| {
        match_groups(a, name(a[2])?, cx.arena)
    }),
    regexp!("regexp_split_to_array", &[TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| {
        split_array("regexp_split_to_array", a, "", cx.arena)
    }),
    regexp!("regexp_split_to_array", &[TEXT, TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| {
        split_array("regexp_split_to_array", a, name(a[2])?, cx.arena)
    }),
    regexp!("substring", &[TEXT, TEXT], TEXT, |_, a| substring(a)),
    func("substring", &[TEXT, TEXT, TEXT], TEXT, |cx, a| {
        compiled_beside(cx, a, |_, a| {
            let found = similar::substring(text(a[0])?, text(a[1])?, text(a[2])?)?;
            Ok(found.map_or(Datum::Null, Datum::Text))
        })
    }),
    regexp!("regexp_substr", &[TEXT, TEXT], TEXT, |_, a| {
        let input = text(a[0])?;
        let found = compile(text(a[1])?, "")?.find(input, 0)?;
        Ok(found.map_or(Datum::Null, |(start, end)| Datum::Text(&input[start..end])))
    }),
    regexp!("regexp_instr", &[TEXT, TEXT], I4, |_, a| Ok(Datum::Int4(position(a, 1)?))),
    regexp!("regexp_instr", &[TEXT, TEXT, I4], I4, |_, a| Ok(Datum::Int4(position(a, int(a[2])?)?))),
];
