//! Parsing: from SQL text to PostgreSQL's own parse tree, by PostgreSQL's own grammar.
//!
//! The parser and every walk over a parse tree (binding, dropping it) recurse as deep as the text
//! nests. So callers run them on the worker's stack, or for long texts on another thread
//! ([`values::work::here_or_beside`]). What must hold: [`depth`] bounds the nesting before the
//! parser sees the text, so that no text overflows that stack.

mod depth;
pub mod rewrite;
#[cfg(test)]
mod tests;

use std::ops::Range;

use pg_query::NodeEnum;
use pg_query::protobuf::{LimitOption, Node, RawStmt, ResTarget, SelectStmt, SetOperation};
use runtime::account::{self, Reservation};

use values::error::{SqlError, SqlState};
use values::work;

/// One statement of a text.
#[derive(Debug)]
pub struct Parsed {
    /// Its tree. Locations in it are byte offsets into the whole text.
    pub node: NodeEnum,
    /// Its part of the text, without the semicolon.
    pub range: Range<usize>,
}

/// Bytes of memory that parsing takes for a word, for another token, and for a byte of the text.
/// They are the most that 60,000 names, lists, calls, casts and long literals took at the peak of
/// parsing.
///
/// The parser is C code: nobody can count its memory or stop it. So all of it is reserved before.
const WORD: usize = 3000;
const OTHER: usize = 1000;
const BYTE: usize = 9;

/// Work of reading a byte and of parsing a token, in ns: about 2 ns and 1 us. It is counted before
/// it is done, since the parser has no safe point.
const READING: usize = 2;
const PARSING: usize = 1000;

/// The statements of a text.
#[derive(Debug)]
pub struct Tree {
    /// Each statement that is not empty.
    pub statements: Vec<Parsed>,
    /// The memory of the parser and of the tree. The tree's reader holds it; objects made from the
    /// tree use the same memory.
    pub reservation: Reservation,
}

/// Parses all statements of a text. On a thread beside the cores it waits for its memory while
/// others parse.
///
/// # Errors
/// PostgreSQL's syntax error with its position; 54001 if the text nests too deeply; 53200 if its
/// tree may be too large.
pub fn parse(text: &str) -> Result<Tree, SqlError> {
    work::tick(text.len() * READING)?;
    let tokens = depth::check(text)?;
    work::tick((tokens.words + tokens.others) * PARSING)?;
    // A text is at most 1 GiB long, so nothing overflows.
    let bytes = tokens.words * WORD + tokens.others * OTHER + text.len() * BYTE;
    let reservation = account::reserve(bytes).map_err(SqlError::stopped)?;
    let tree = parser::parse(text).map_err(refused)?;
    let mut statements = Vec::with_capacity(tree.len());
    for raw in tree {
        let start = usize::try_from(raw.stmt_location).unwrap_or(0).min(text.len());
        let length = usize::try_from(raw.stmt_len).unwrap_or(0);
        let end = if length == 0 { text.len() } else { (start + length).min(text.len()) };
        if let Some(node) = raw.stmt.and_then(|node| node.node) {
            statements.push(Parsed { node, range: start..end });
        }
    }
    Ok(Tree { statements, reservation })
}

/// The ranges of a text's statements, for texts with several of them. Each is compiled only when
/// its turn comes, because it may use what the one before defined. Long texts are read beside the
/// core.
///
/// # Errors
/// As [`parse`].
pub fn split(text: &str) -> Result<Vec<Range<usize>>, SqlError> {
    fn ranges(text: &str) -> Result<Vec<Range<usize>>, SqlError> {
        Ok(parse(text)?.statements.into_iter().map(|parsed| parsed.range).collect())
    }
    work::here_or_beside(
        || ranges(text),
        || {
            let text = work::owned_text(text)?;
            Ok(move || ranges(&text))
        },
    )
}

/// Converts a byte offset to a position in characters, counted from 1.
pub fn position(text: &str, offset: usize) -> Option<u32> {
    u32::try_from(text.get(..offset)?.chars().count() + 1).ok()
}

/// The SQL text of an expression, as the catalog keeps it.
///
/// # Errors
/// If the parser library cannot write the expression as text.
pub(crate) fn expression_text(expression: &Node) -> Result<String, SqlError> {
    let target = ResTarget { val: Some(Box::new(expression.clone())), ..ResTarget::default() };
    let select = SelectStmt {
        target_list: vec![Node { node: Some(NodeEnum::ResTarget(Box::new(target))) }],
        limit_option: LimitOption::Default as i32,
        op: SetOperation::SetopNone as i32,
        ..SelectStmt::default()
    };
    let statement = Node { node: Some(NodeEnum::SelectStmt(Box::new(select))) };
    let raw = RawStmt { stmt: Some(Box::new(statement)), stmt_location: 0, stmt_len: 0 };
    let tree = pg_query::protobuf::ParseResult { version: 0, stmts: vec![raw] };
    let text = pg_query::deparse(&tree, pg_query::DeparseOptions::default());
    let text = text.ok().and_then(|text| text.strip_prefix("SELECT ").map(str::to_owned));
    text.ok_or_else(|| SqlError::unsupported("storing this expression"))
}

/// The parser's error as clients see it.
fn refused(error: parser::Error) -> SqlError {
    let refused = SqlError::new(SqlState(error.state), error.message).at(error.position);
    let refused = match error.detail {
        Some(detail) => refused.with_detail(detail),
        None => refused,
    };
    match error.hint {
        // It names a setting that Allcore does not have.
        Some(_) if refused.code == SqlState::STATEMENT_TOO_COMPLEX => refused,
        Some(hint) => refused.with_hint(hint),
        None => refused,
    }
}

/// The texts of a list of String nodes (a qualified name).
pub(crate) fn strings(nodes: &[Node]) -> Vec<&str> {
    nodes
        .iter()
        .filter_map(|node| match &node.node {
            Some(NodeEnum::String(string)) => Some(string.sval.as_str()),
            _ => None,
        })
        .collect()
}
