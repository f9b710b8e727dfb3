//! PostgreSQL's raw parser, by PostgreSQL's own grammar and scanner: from a text to its parse tree.
//!
//! The crate `pg_query` compiles PostgreSQL's parser and has the types of the tree. Its own way to
//! the tree encodes it as protobuf and decodes that, which takes several times the parser's time.
//! So this crate calls the parser itself. A small part in C (`raw_parse.c`) runs it, catches its
//! errors and writes the tree as bytes. The module [`tree`] reads these.
//!
//! What must hold:
//!
//! 1. The parser keeps its state by thread and takes no lock. So any number of threads parse at
//!    once.
//! 2. The parser and the readers of its tree recurse as deep as the text nests. Callers bound the
//!    nesting and choose the stack.
//! 3. The bytes come from code in C, and Rust checks all of them. A wrong length or tag is an
//!    error, not undefined behaviour.

#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]

mod bytes;
mod outcome;
#[cfg(test)]
mod tests;
mod tree;

use std::ffi::CString;

use pg_query::protobuf::RawStmt;

use outcome::Outcome;

/// An error of the parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The five characters of its SQLSTATE.
    pub state: [u8; 5],
    /// The failure in one sentence.
    pub message: String,
    /// Details of the failure.
    pub detail: Option<String>,
    /// Advice.
    pub hint: Option<String>,
    /// Its position in the text, in characters from 1.
    pub position: Option<u32>,
}

/// SQLSTATE of a text that holds a null character (`character_not_in_repertoire`), and the message.
const NOT_IN_REPERTOIRE: [u8; 5] = *b"22021";
const NULL_CHARACTER: &str = "invalid byte sequence for encoding \"UTF8\": 0x00";
/// SQLSTATE of a tree that the two sides of this crate disagree about (`internal_error`).
const INTERNAL: [u8; 5] = *b"XX000";

impl Error {
    fn new(state: [u8; 5], message: &str) -> Self {
        Self { state, message: message.to_owned(), detail: None, hint: None, position: None }
    }
}

/// The statements of a text. Locations in them are byte offsets into the text.
///
/// # Errors
/// The parser's error.
pub fn parse(text: &str) -> Result<Vec<RawStmt>, Error> {
    let text = CString::new(text).map_err(|_| Error::new(NOT_IN_REPERTOIRE, NULL_CHARACTER))?;
    let outcome = Outcome::of(&text);
    match outcome.tree() {
        Some(tree) => tree::read(tree).ok_or_else(|| Error::new(INTERNAL, "invalid parse tree")),
        None => Err(outcome.error()),
    }
}
