//! The type that a text names, as regtype reads it: by the grammar's rules for a type's name.
//!
//! What must hold:
//!
//! 1. The text cannot end the statement around it. It is split before a token that would, and a
//!    comment at its end is closed by a line break.
//! 2. Errors read as for the text alone, with no trace of the statement around it.
//! 3. A long text is read beside the core.

use pg_query::NodeEnum;

use super::inner;
use super::types::named;
use values::error::{SqlError, SqlState};
use values::types::Type;
use values::work;

use crate::{normalize, parse};

/// The start of a statement around a type's name. The parenthesis that closes this one ends the
/// name.
const BEFORE: &str = "SELECT CAST(NULL AS ";

/// The type that a text names.
///
/// # Errors
/// 42601 if the text is no type's name, 42704 if no such type exists.
pub fn named_type(text: &str) -> Result<Type, SqlError> {
    work::here_or_beside(
        || read(text),
        || {
            let text = work::owned_text(text)?;
            Ok(move || read(&text))
        },
    )
}

fn read(text: &str) -> Result<Type, SqlError> {
    if text.bytes().all(|byte| byte.is_ascii_whitespace() || byte == 0x0b) {
        return Err(no_name(text));
    }
    let (name, stray) = split(text);
    // The text may end in a comment, so the closing parenthesis is on its own line.
    let tree =
        parse::parse(&format!("{BEFORE}{name}\n)")).map_err(|error| misread(error, (text, name, stray)))?;
    if let Some(stray) = stray {
        return Err(no_grammar(format!("syntax error at or near \"{stray}\""), text));
    }
    let [statement] = tree.statements.as_slice() else { return Err(no_name(text)) };
    let NodeEnum::SelectStmt(select) = &statement.node else { return Err(no_name(text)) };
    let Some(NodeEnum::ResTarget(target)) = select.target_list.first().map(inner).transpose()? else {
        return Err(no_name(text));
    };
    let Some(NodeEnum::TypeCast(cast)) = target.val.as_deref().map(inner).transpose()? else {
        return Err(no_name(text));
    };
    match &cast.type_name {
        Some(name) if !name.setof => named(name).map_err(|(error, _)| error),
        _ => Err(no_name(text)),
    }
}

/// Splits a text before the first token that would end the cast or the statement; also returns this
/// token.
fn split(text: &str) -> (&str, Option<&str>) {
    let (mut depth, mut stray) = (0, None);
    normalize::for_each_token(text, |start, end| match &text[start..end] {
        "(" => depth += 1,
        ")" if depth > 0 => depth -= 1,
        ")" | ";" if stray.is_none() => stray = Some(start..end),
        _ => {}
    });
    match stray {
        Some(stray) => (&text[..stray.start], Some(&text[stray])),
        None => (text, None),
    }
}

/// The parser's error, as it would read for the text alone.
fn misread(error: SqlError, (text, name, stray): (&str, &str, Option<&str>)) -> SqlError {
    let behind = BEFORE.len() + name.chars().count();
    let message = match error.position {
        Some(position) if position as usize > behind => match stray {
            Some(stray) => format!("syntax error at or near \"{stray}\""),
            None => "syntax error at end of input".to_owned(),
        },
        // An unfinished token includes the rest of the statement.
        _ => match error.message.strip_suffix("\n)\"") {
            Some(message) => format!("{message}\""),
            None => error.message.clone(),
        },
    };
    SqlError::new(error.code, message).with_context(context(text))
}

fn no_grammar(message: String, text: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message).with_context(context(text))
}

fn context(text: &str) -> String {
    format!("invalid type name \"{text}\"")
}

fn no_name(text: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, context(text))
}
