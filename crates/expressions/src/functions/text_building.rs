//! Texts that functions build: PostgreSQL's limit of their length, replacement, quoting.

use values::error::{SqlError, SqlState};
use values::{memory, work};

type Result<T> = std::result::Result<T, SqlError>;

/// The longest text that a function makes: 1 GiB less a header, as in PostgreSQL.
pub(super) const LENGTH_MAX: usize = (1 << 30) - 8;

/// 54000: refuses a text longer than [`LENGTH_MAX`].
pub(super) fn bounded(length: usize) -> Result<()> {
    if length > LENGTH_MAX {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    Ok(())
}

/// Asks for the memory of a text before it is made: the text, and its copy in the arena.
pub(super) fn room(length: usize) -> Result<()> {
    bounded(length)?;
    memory::ask(2 * length)
}

/// The text with `to` in place of each occurrence of `from`, which is not empty.
pub(super) fn replace(input: &str, from: &str, to: &str) -> Result<String> {
    let (mut out, mut copied) = (String::with_capacity(input.len()), 0);
    work::each_match(input, from, |at| {
        bounded(out.len() + (at - copied) + to.len())?;
        work::push(&mut out, &input[copied..at])?;
        work::push(&mut out, to)?;
        work::tick(to.len())?;
        copied = at + from.len();
        Ok(true)
    })?;
    work::push(&mut out, &input[copied..])?;
    bounded(out.len())?;
    Ok(out)
}

/// The text as an SQL literal, with `E` in front where it has a backslash.
pub(super) fn quote_literal(input: &str) -> Result<String> {
    let quoted = replace(input, "'", "''")?;
    let (mut out, escaped) = match work::contains(quoted.as_bytes(), b'\\')? {
        true => ("E'".to_owned(), replace(&quoted, "\\", "\\\\")?),
        false => ("'".to_owned(), quoted),
    };
    work::push(&mut out, &escaped)?;
    out.push('\'');
    Ok(out)
}
