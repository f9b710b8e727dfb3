//! Prefixes of patterns: the beginning that all matching texts share.
//!
//! What must hold:
//!
//! 1. A text that matches a pattern begins with its prefix. If no rest follows the prefix
//!    ([`Rest::Nothing`]), the text is the prefix. If anything may follow ([`Rest::Anything`]),
//!    each text with the prefix matches.
//! 2. Finding a prefix cannot fail. A pattern that its function refuses has some prefix, and the
//!    function reports the error for the texts that begin with it.
//! 3. The work is bounded, whatever the pattern's length.

use std::borrow::Cow;

/// The longest prefix in bytes. Keys are no longer. A longer pattern gives a part of its prefix.
const LONGEST: usize = 1024;

/// The kinds of functions that compare a text with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// LIKE.
    Like,
    /// A regular expression that heeds case.
    Regex,
    /// `starts_with` and `^@`.
    Start,
}

/// The part of a pattern behind its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The pattern ends.
    Nothing,
    /// It matches any text.
    Anything,
    /// It matches some texts.
    Pattern,
}

/// The beginning that all texts share that match a pattern.
#[derive(Debug, PartialEq, Eq)]
pub struct Prefix<'p> {
    /// The beginning.
    pub text: Cow<'p, str>,
    /// The pattern behind it.
    pub rest: Rest,
}

impl Matching {
    /// The operator of the kind.
    #[must_use]
    pub fn operator(self) -> &'static str {
        match self {
            Matching::Like => "~~",
            Matching::Regex => "~",
            Matching::Start => "^@",
        }
    }

    /// The prefix of a pattern.
    #[must_use]
    pub fn prefix(self, pattern: &str) -> Prefix<'_> {
        let cut = pattern.floor_char_boundary(LONGEST);
        match self {
            Matching::Like => of_like(pattern),
            Matching::Regex => match pattern.strip_prefix('^') {
                Some(anchored) if pattern.len() <= LONGEST && !is_alternative(anchored) => of_regex(anchored),
                _ => Prefix { text: Cow::Borrowed(""), rest: Rest::Pattern },
            },
            Matching::Start if cut < pattern.len() => {
                Prefix { text: Cow::Borrowed(&pattern[..cut]), rest: Rest::Pattern }
            }
            Matching::Start => Prefix { text: Cow::Borrowed(pattern), rest: Rest::Anything },
        }
    }
}

fn of_like(pattern: &str) -> Prefix<'_> {
    let (mut text, mut rest) = (String::new(), Rest::Nothing);
    let mut characters = pattern.char_indices();
    while let Some((at, c)) = characters.next() {
        let is_last = |behind: &str| behind.len() <= LONGEST && behind.bytes().all(|byte| byte == b'%');
        match c {
            '%' if is_last(&pattern[at..]) => rest = Rest::Anything,
            _ if c == '%' || c == '_' || at >= LONGEST => rest = Rest::Pattern,
            '\\' => match characters.next() {
                Some((_, escaped)) => {
                    text.push(escaped);
                    continue;
                }
                None => rest = Rest::Pattern,
            },
            _ => {
                text.push(c);
                continue;
            }
        }
        break;
    }
    Prefix { text: Cow::Owned(text), rest }
}

/// The prefix of a regular expression behind its `^`.
fn of_regex(anchored: &str) -> Prefix<'_> {
    let mut text = String::new();
    let mut characters = anchored.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            // The character before may be missing.
            '*' | '?' | '{' => {
                text.pop();
            }
            '$' if characters.peek().is_none() => {
                return Prefix { text: Cow::Owned(text), rest: Rest::Nothing };
            }
            '\\' => {
                // A letter or a digit behind a backslash is a class or a constraint.
                if let Some(escaped) = characters.next_if(|c| !c.is_alphanumeric()) {
                    text.push(escaped);
                    continue;
                }
            }
            '^' | '$' | '.' | '[' | '(' | ')' | '|' | '+' => {}
            _ => {
                text.push(c);
                continue;
            }
        }
        break;
    }
    Prefix { text: Cow::Owned(text), rest: Rest::Pattern }
}

/// Whether a regular expression may have alternatives outside its parentheses.
fn is_alternative(pattern: &str) -> bool {
    if !pattern.contains('|') {
        return false;
    }
    // Brackets and comments may contain parentheses that close nothing.
    if pattern.contains('[') || pattern.contains("(?#") {
        return true;
    }
    let mut depth = 0;
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth <= 0 => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use bumpalo::Bump;
    use values::environment::NoSession;
    use values::types::{Datum, Type, Value};

    use super::*;
    use crate::context::EvalContext;
    use crate::expr::Expr;
    use crate::functions::operator;

    /// All sequences of up to this many pieces.
    fn sequences(pieces: &[&str], most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..most {
            last = last
                .iter()
                .flat_map(|start| pieces.iter().map(move |piece| format!("{start}{piece}")))
                .collect();
            all.extend(last.iter().cloned());
        }
        all
    }

    /// Whether a text matches a pattern; `None` for a pattern that is refused.
    fn matches(matching: Matching, text: &str, pattern: &str) -> Option<bool> {
        let value = |text: &str| Expr::constant(Value::Text(text.into()), Type::TEXT);
        let call = operator(matching.operator(), Some(value(text)), value(pattern)).unwrap();
        let (arena, session) = (Bump::new(), NoSession::default());
        match call.eval(&mut EvalContext::new(&[], &[], &arena, &session)) {
            Ok(Datum::Bool(matches)) => Some(matches),
            Ok(other) => panic!("{other:?}"),
            Err(_) => None,
        }
    }

    fn check(matching: Matching, patterns: &[String], texts: &[String]) {
        for pattern in patterns {
            let Prefix { text: prefix, rest } = matching.prefix(pattern);
            for text in texts {
                let in_range = match rest {
                    Rest::Nothing => *text == prefix,
                    _ => text.starts_with(&*prefix),
                };
                let said = (matching, pattern, text);
                match matches(matching, text, pattern) {
                    Some(true) => assert!(in_range, "{said:?}"),
                    Some(false) => assert!(!in_range || rest == Rest::Pattern, "{said:?}"),
                    None => assert!(rest == Rest::Pattern, "{said:?}"),
                }
            }
        }
    }

    #[test]
    fn a_text_that_is_like_a_pattern_has_its_prefix() {
        let patterns = sequences(&["a", "é", "%", "_", "\\", "\\%", "\u{10ffff}"], 4);
        let texts = sequences(&["a", "é", "%", "\\", "\u{10ffff}"], 3);
        check(Matching::Like, &patterns, &texts);
        check(Matching::Start, &patterns, &texts);
    }

    #[test]
    fn a_text_that_matches_a_regular_expression_has_its_prefix() {
        let pieces = ["a", "é", "$", "*", "?", "|", "(", ")", "\\."];
        let mut patterns = sequences(&pieces, 3);
        patterns.iter_mut().for_each(|pattern| pattern.insert(0, '^'));
        let others = [
            "^a(b|é)*b",
            "^(a|b)",
            "^a(b|b",
            "^ab)|b",
            "^(?#|)a",
            "^a\\(|b",
            "(?i)^a",
            "***=^a",
            "^a|",
            "^a\nb$",
            "^ab+",
            "^ab{2}",
            "^ab{0}",
            "^ab{,2}",
            "^a{b",
            "^a\\d",
            "^a\\d*b",
            "^a[^|]",
            "^a[|]b",
            "^a.b",
            "a",
            "^^a",
            "^a^b",
            "^a$b",
            "^ab??",
            "(?n)^b",
            "(?x)^a b",
            "^a#b",
            "(a|^b)",
            "^(?:a|b)|.",
        ];
        patterns.extend(others.map(str::to_owned));
        let texts = sequences(&["a", "b", "aé", ".", "|", "b2", "\n"], 2);
        check(Matching::Regex, &patterns, &texts);
    }

    #[test]
    fn prefixes_end_where_other_characters_may_follow() {
        let prefix = |matching: Matching, pattern: &str| {
            let Prefix { text, rest } = matching.prefix(pattern);
            (text.into_owned(), rest)
        };
        let is = |text: &str, rest: Rest| (text.to_owned(), rest);
        assert_eq!(prefix(Matching::Like, "ab\\_c%%"), is("ab_c", Rest::Anything));
        assert_eq!(prefix(Matching::Like, "ab_c%"), is("ab", Rest::Pattern));
        assert_eq!(prefix(Matching::Like, "a%b"), is("a", Rest::Pattern));
        assert_eq!(prefix(Matching::Like, "a\\"), is("a", Rest::Pattern));
        assert_eq!(prefix(Matching::Like, ""), is("", Rest::Nothing));
        assert_eq!(prefix(Matching::Regex, "^a\\.b+c"), is("a.b", Rest::Pattern));
        assert_eq!(prefix(Matching::Regex, "^ab$"), is("ab", Rest::Nothing));
        assert_eq!(prefix(Matching::Regex, "^QB-(1|2)"), is("QB-", Rest::Pattern));
        assert_eq!(prefix(Matching::Regex, "^ab|c"), is("", Rest::Pattern));
        assert_eq!(prefix(Matching::Regex, "ab"), is("", Rest::Pattern));
        let long = "é".repeat(LONGEST);
        for matching in [Matching::Like, Matching::Start] {
            let (text, rest) = prefix(matching, &long);
            assert!(text.len() <= LONGEST && rest == Rest::Pattern);
        }
    }
}
