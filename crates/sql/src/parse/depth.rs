//! A bound on how deeply a text nests, found from its tokens before it is parsed.
//!
//! The parse tree is deep where brackets nest and where left-associative operators, joins or set operations chain.
//! Lists (commas) and AND/OR chains are flat. The estimate is never lower than the tree's depth divided by a small
//! constant, so bounding it bounds the stack every later stage needs.

use crate::error::{SqlError, SqlState};

/// Deeper than this is refused. A level costs the parser and binder a few KiB of the worker's stack.
const MAX_DEPTH: u32 = 500;

/// The chains that are open inside one pair of brackets.
#[derive(Default)]
struct Level {
    /// Operators since the last comma, AND or OR.
    operators: u32,
    /// Joins and set operations.
    relations: u32,
}

/// Checks a text.
///
/// # Errors
/// 54001 when it nests too deeply.
pub(super) fn check(text: &str) -> Result<(), SqlError> {
    let mut levels = vec![Level::default()];
    let mut depth = 0_u32;
    let mut deepest = 0_u32;
    crate::normalize::for_each_token(text, |start, end| {
        let token = &text.as_bytes()[start..end];
        match token {
            [b'(' | b'['] => {
                depth += 1;
                levels.push(Level::default());
                deepest = deepest.max(depth);
                return;
            }
            [b')' | b']'] => {
                if levels.len() > 1
                    && let Some(level) = levels.pop()
                {
                    depth -= 1 + level.operators + level.relations;
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
            [b'-', b'-', ..] | [b'/', b'*', ..] => {}
            [first, ..] if first.is_ascii_alphabetic() || *first == b'_' || *first >= 128 => {
                match word(token) {
                    Word::Flat => depth -= std::mem::take(&mut level.operators),
                    Word::Operator => (depth, level.operators) = (depth + 1, level.operators + 1),
                    Word::Relation => (depth, level.relations) = (depth + 1, level.relations + 1),
                    Word::Plain => {}
                }
            }
            [first, ..] if first.is_ascii_digit() => {}
            _ => (depth, level.operators) = (depth + 1, level.operators + 1),
        }
        deepest = deepest.max(depth);
    });
    if deepest > MAX_DEPTH {
        return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
            .with_hint(format!("The statement nests more than {MAX_DEPTH} levels deep.")));
    }
    Ok(())
}

enum Word {
    Flat,
    Operator,
    Relation,
    Plain,
}

fn word(token: &[u8]) -> Word {
    const FLAT: [&[u8]; 3] = [b"and", b"or", b"when"];
    const OPERATORS: [&[u8]; 12] = [
        b"not", b"is", b"isnull", b"notnull", b"case", b"collate", b"at", b"like", b"ilike", b"in",
        b"between", b"similar",
    ];
    const RELATIONS: [&[u8]; 6] = [b"join", b"union", b"intersect", b"except", b"with", b"explain"];
    let is = |list: &[&[u8]]| list.iter().any(|word| token.eq_ignore_ascii_case(word));
    if is(&FLAT) {
        Word::Flat
    } else if is(&OPERATORS) {
        Word::Operator
    } else if is(&RELATIONS) {
        Word::Relation
    } else {
        Word::Plain
    }
}
