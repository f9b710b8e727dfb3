//! SQL's own regular expressions: the patterns of SIMILAR TO, and of SUBSTRING(text SIMILAR pattern
//! ESCAPE character).
//!
//! Two escaped double quotes divide a pattern of SUBSTRING into the part before the result, the
//! result, and the part after it. The first part takes as little as possible, then the second as
//! much as possible. A search that follows all paths at once finds the possible bounds in linear
//! time: forward for ends, backward for beginnings.

use regex_automata::hybrid::dfa::{DFA, OverlappingState};
use regex_automata::{Anchored, Input, MatchKind};

use super::translate::{invalid, translate};
use super::{check_length, compiled};
use values::error::{SqlError, SqlState};
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

/// The escape character in a text; None for an empty text.
pub(in crate::functions) fn escape_character(escape: &str) -> Result<Option<char>> {
    let mut characters = escape.chars();
    let (escape, more) = (characters.next(), characters.next());
    if more.is_some() {
        return Err(SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    Ok(escape)
}

/// The translator's position relative to bracket expressions.
#[derive(Clone, Copy)]
enum Bracket {
    /// Outside of brackets.
    Outside,
    /// After `[`, or `[^` when `negated`: a `]` here is an ordinary character.
    Start { negated: bool },
    /// Inside brackets, nested this deep.
    Inside { depth: usize },
}

/// The parts of a pattern, one to three, as regular expressions.
fn parts(pattern: &str, escape: Option<char>) -> Result<Vec<String>> {
    check_length(pattern)?;
    let mut parts = Vec::new();
    let mut part = String::with_capacity(pattern.len());
    let (mut bracket, mut escaped) = (Bracket::Outside, false);
    for c in pattern.chars() {
        work::tick(1)?;
        if escaped {
            escaped = false;
            if c == '"' && matches!(bracket, Bracket::Outside) {
                if parts.len() == 2 {
                    let message =
                        "SQL regular expression may not contain more than two escape-double-quote separators";
                    return Err(SqlError::new(SqlState::INVALID_USE_OF_ESCAPE_CHARACTER, message));
                }
                parts.push(std::mem::take(&mut part));
                continue;
            }
            part.extend(['\\', c]);
            if matches!(bracket, Bracket::Start { .. }) {
                bracket = Bracket::Inside { depth: 1 };
            }
        } else if Some(c) == escape {
            escaped = true;
        } else if let Bracket::Outside = bracket {
            match c {
                '[' => {
                    bracket = Bracket::Start { negated: false };
                    part.push(c);
                }
                '%' => part.push_str(".*"),
                '_' => part.push('.'),
                '(' => part.push_str("(?:"),
                '\\' | '.' | '^' | '$' => part.extend(['\\', c]),
                _ => part.push(c),
            }
        } else {
            if c == '\\' {
                part.push(c);
            }
            part.push(c);
            bracket = match (bracket, c) {
                (Bracket::Start { negated: false }, '^') => Bracket::Start { negated: true },
                (Bracket::Inside { depth: 1 }, ']') => Bracket::Outside,
                (Bracket::Inside { depth }, ']') => Bracket::Inside { depth: depth - 1 },
                (Bracket::Inside { depth }, '[') => Bracket::Inside { depth: depth + 1 },
                (Bracket::Inside { depth }, _) => Bracket::Inside { depth },
                (_, '[') => Bracket::Inside { depth: 2 },
                _ => Bracket::Inside { depth: 1 },
            };
        }
    }
    parts.push(part);
    Ok(parts)
}

/// A pattern of SIMILAR TO as a regular expression over the whole text.
pub(in crate::functions) fn whole(pattern: &str, escape: &str) -> Result<String> {
    Ok(match parts(pattern, escape_character(escape)?)?.as_slice() {
        [first, second, third] => format!("^(?:{first}){{1,1}}?({second}){{1,1}}(?:{third})$"),
        [first, second] => format!("^(?:{first}){{1,1}}?({second})$"),
        parts => format!("^(?:{})$", parts.concat()),
    })
}

/// The part of a text between the separators of a pattern that matches the whole text.
pub(super) fn substring<'t>(text: &'t str, pattern: &str, escape: &str) -> Result<Option<&'t str>> {
    let parts = parts(pattern, escape_character(escape)?)?;
    let [first, second, rest @ ..] = parts.as_slice() else {
        let pattern = format!("^(?:{})$", parts.concat());
        let matched = compiled::with(&pattern, "", |regex| Ok(regex.is_match(text)))?;
        return Ok(matched.then_some(text));
    };
    let third = rest.first().map_or("", String::as_str);
    let begins = places(&format!("(?:{second})(?:{third})"), text, true)?;
    let Some(begin) = places(first, text, false)?.into_iter().filter(|at| begins.contains(at)).min() else {
        return Ok(None);
    };
    let after = &text[begin..];
    let ends = places(third, after, true)?;
    let end = places(second, after, false)?.into_iter().filter(|at| ends.contains(at)).max();
    Ok(end.map(|end| &after[..end]))
}

/// The ends of the matches that begin at the text's start; with `backward` the beginnings of those
/// that end at its end.
fn places(pattern: &str, text: &str, backward: bool) -> Result<runtime::hash::HashSet<usize>> {
    let refused = |_| SqlError::unsupported("this regular expression in SUBSTRING ... SIMILAR");
    let translated = translate(&format!("(?:{pattern})"), "")?.pattern;
    let engine = DFA::builder()
        .configure(DFA::config().match_kind(MatchKind::All).skip_cache_capacity_check(true))
        .build_from_nfa(compiled::automaton(&translated, backward)?)
        .map_err(|_| invalid("regular expression is too complex"))?;
    let mut cache = engine.create_cache();
    let mut state = OverlappingState::start();
    let input = Input::new(text).anchored(Anchored::Yes);
    let mut found = runtime::hash::HashSet::default();
    loop {
        if backward {
            engine.try_search_overlapping_rev(&mut cache, &input, &mut state).map_err(refused)?;
        } else {
            engine.try_search_overlapping_fwd(&mut cache, &input, &mut state).map_err(refused)?;
        }
        let Some(place) = state.get_match() else { return Ok(found) };
        work::tick(16)?;
        if text.is_char_boundary(place.offset()) {
            found.insert(place.offset());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_takes_little_and_the_second_much() {
        let found = |text, pattern| substring(text, pattern, "#").unwrap();
        assert_eq!(found("abcdefg", "a#\"(b_d)#\"%"), Some("bcd"));
        assert_eq!(found("abcdefg", "#\"(b_d)#\"%"), None);
        assert_eq!(found("abcdefg", "a*#\"%#\"g*"), Some("abcdefg"));
        assert_eq!(found("abcdefg", "a|b#\"%#\"g"), Some("bcdef"));
        assert_eq!(found("abcdefg", "a#\"%#\"x|g"), Some("bcdef"));
        assert_eq!(found("abcdefg", "a#\"%|ab#\"g"), Some("bcdef"));
        assert_eq!(found("abcdefg", "a#\"%g"), Some("bcdefg"));
        assert_eq!(found("abcdefg", "a%g"), Some("abcdefg"));
        assert_eq!(found("\u{e9}a\u{e9}\u{e9}", "\u{e9}#\"%#\"\u{e9}"), Some("a\u{e9}"));
        assert!(substring("abcdefg", "a*#\"%#\"g*#\"x", "#").is_err());
    }
}
