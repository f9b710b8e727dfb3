//! A bound on how deeply a text nests, estimated from its tokens before the parser runs.
//!
//! - The parse tree is deep where brackets nest and where left-associative operators, joins or set
//!   operations form chains. Lists (commas) and AND/OR chains are flat.
//! - Comments inside comments make no tree. But for each level the parser reads the opening signs
//!   again, which once held a core for minutes.
//!
//! What must hold: the estimate is never lower than the tree's depth divided by a small constant.
//! So a bound on it bounds the stack that every later stage needs.

use values::error::{SqlError, SqlState};

/// Deepest nesting that is accepted. A level costs the parser and binder a few KiB of the worker's
/// stack.
const MAX_DEPTH: u32 = 2000;

/// Parts of a level. The counters below count in these parts.
const PARTS: u32 = 8;
/// Parts of a join. Its plan takes more work and memory than an operator's.
const RELATION: u32 = 4 * PARTS;
/// Parts of a set operation. The binder treats a chain of UNIONs as one operation, so that only the
/// parser and short walks nest there.
const SET_OPERATION: u32 = 4;

/// The open chains inside one pair of brackets, in parts of a level.
#[derive(Default)]
struct Level {
    /// Operators since the last comma, AND or OR.
    operators: u32,
    /// Joins and set operations.
    relations: u32,
}

/// The number of tokens in a text.
#[derive(Default)]
pub(super) struct Tokens {
    /// Names and keywords.
    pub words: usize,
    /// Literals, operators and signs.
    pub others: usize,
}

/// Checks a text; returns its number of tokens.
///
/// # Errors
/// 54001 for a text that nests too deeply; 42601 for a parameter followed by letters, which the
/// parser would read as two words.
pub(super) fn check(text: &str) -> Result<Tokens, SqlError> {
    let mut levels = vec![Level::default()];
    let mut depth = 0_u32;
    let mut deepest = 0_u32;
    let mut seen = 0;
    let mut tokens = Tokens::default();
    let mut junk = None;
    let is_whole = crate::normalize::for_each_token(text, |start, end| {
        let token = &text.as_bytes()[start..end];
        seen = end;
        match token {
            [first, ..] if first.is_ascii_alphabetic() || matches!(*first, b'_' | b'"' | 128..) => {
                tokens.words += 1;
            }
            _ => tokens.others += 1,
        }
        if let [b'$', b'0'..=b'9', ..] = token
            && text[end..].starts_with(|next: char| next == '_' || next.is_alphabetic() || !next.is_ascii())
        {
            junk.get_or_insert((start, end));
        }
        match token {
            [b'(' | b'['] => {
                depth += PARTS;
                levels.push(Level::default());
                deepest = deepest.max(depth);
                return;
            }
            [b')' | b']'] => {
                if levels.len() > 1
                    && let Some(level) = levels.pop()
                {
                    depth -= PARTS + level.operators + level.relations;
                }
                return;
            }
            [b';'] => {
                levels.clear();
                levels.push(Level::default());
                depth = 0;
                return;
            }
            _ => {}
        }
        let Some(level) = levels.last_mut() else { return };
        match token {
            [b','] => depth -= std::mem::take(&mut level.operators),
            [b'\'' | b'"' | b'.' | b'$', ..] => {}
            [b'/', b'*', ..] => deepest = deepest.max(comments(token) * PARTS),
            [b'-', b'-', ..] => {}
            [first, ..] if first.is_ascii_alphabetic() || *first == b'_' || *first >= 128 => {
                match word(token) {
                    Word::Flat => depth -= std::mem::take(&mut level.operators),
                    Word::Operator => (depth, level.operators) = (depth + PARTS, level.operators + PARTS),
                    Word::Relation => {
                        (depth, level.relations) = (depth + RELATION, level.relations + RELATION)
                    }
                    Word::SetOperation => {
                        (depth, level.relations) = (depth + SET_OPERATION, level.relations + SET_OPERATION);
                    }
                    Word::Plain => {}
                }
            }
            [first, ..] if first.is_ascii_digit() => {}
            _ => (depth, level.operators) = (depth + PARTS, level.operators + PARTS),
        }
        deepest = deepest.max(depth);
    });
    if !is_whole {
        deepest = deepest.max(comments(&text.as_bytes()[seen..]) * PARTS);
    }
    if let Some(parameter) = junk {
        return Err(trailing_junk(text, parameter));
    }
    if deepest > MAX_DEPTH * PARTS {
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
            .with_hint(format!("The statement nests more than {MAX_DEPTH} levels deep.")));
    }
    Ok(tokens)
}

/// The error for a parameter followed by letters.
fn trailing_junk(text: &str, (start, end): (usize, usize)) -> SqlError {
    let of_name = |c: &char| c.is_ascii_alphanumeric() || matches!(*c, '_' | '$') || !c.is_ascii();
    let name: String = text[end..].chars().take_while(of_name).collect();
    let message = format!("trailing junk after parameter at or near \"{}{name}\"", &text[start..end]);
    SqlError::new(SqlState::SYNTAX_ERROR, message).at(super::position(text, start))
}

/// The nesting depth of comments in a comment, or in a token without an end.
fn comments(mut bytes: &[u8]) -> u32 {
    let (mut depth, mut deepest) = (0_u32, 0);
    loop {
        bytes = match bytes {
            [b'/', b'*', rest @ ..] => {
                depth += 1;
                deepest = deepest.max(depth);
                rest
            }
            [b'*', b'/', rest @ ..] => {
                depth = depth.saturating_sub(1);
                rest
            }
            [_, rest @ ..] => rest,
            [] => return deepest,
        };
    }
}

enum Word {
    Flat,
    Operator,
    Relation,
    SetOperation,
    Plain,
}

fn word(token: &[u8]) -> Word {
    const FLAT: [&[u8]; 3] = [b"and", b"or", b"when"];
    const OPERATORS: [&[u8]; 12] = [
        b"not", b"is", b"isnull", b"notnull", b"case", b"collate", b"at", b"like", b"ilike", b"in",
        b"between", b"similar",
    ];
    const RELATIONS: [&[u8]; 3] = [b"join", b"with", b"explain"];
    const SET_OPERATIONS: [&[u8]; 3] = [b"union", b"intersect", b"except"];
    let is = |list: &[&[u8]]| list.iter().any(|word| token.eq_ignore_ascii_case(word));
    if is(&FLAT) {
        Word::Flat
    } else if is(&OPERATORS) {
        Word::Operator
    } else if is(&RELATIONS) {
        Word::Relation
    } else if is(&SET_OPERATIONS) {
        Word::SetOperation
    } else {
        Word::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(text: &str) -> bool {
        check(text).is_err_and(|error| error.code == SqlState::STATEMENT_TOO_COMPLEX)
    }

    #[test]
    fn what_nests_is_bounded_and_what_is_flat_is_not() {
        let nested = |open: &str, middle: &str, close: &str, count: usize| {
            format!("select {}{middle}{}", open.repeat(count), close.repeat(count))
        };
        for (open, middle, close) in [("(", "1", ")"), ("1+", "1", ""), ("/*", "", "*/"), ("/*", "", "")] {
            assert!(!is_refused(&nested(open, middle, close, 1900)), "{open}");
            assert!(is_refused(&nested(open, middle, close, 2001)), "{open}");
        }
        for flat in ["1, ", "true and ", "/* a /* b */ c */ ", "'/*/*' , "] {
            assert!(!is_refused(&nested(flat, "1", "", 5000)), "{flat}");
        }
    }
}
