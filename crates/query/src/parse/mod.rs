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
mod unicode;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    let tree = run(text).map_err(|message| describe(text, &message))?;
    let mut statements = Vec::with_capacity(tree.stmts.len());
    for raw in tree.stmts {
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

/// The text's tree, or the parser's message. The parser keeps its state by thread, so any number of
/// threads can parse at the same time.
fn run(text: &str) -> Result<pg_query::protobuf::ParseResult, String> {
    // The parser crate's summary of the tree panics on a few unusual statements. They raise an
    // error here.
    let result = catch_unwind(AssertUnwindSafe(|| pg_query::parse(text, 0)));
    match result {
        Ok(Ok(parsed)) => Ok(parsed.protobuf),
        Ok(Err(pg_query::Error::Parse(message))) => Err(message),
        Ok(Err(pg_query::Error::Conversion(_))) => {
            Err("invalid byte sequence for encoding \"UTF8\": 0x00".to_owned())
        }
        Ok(Err(other)) => Err(other.to_string()),
        Err(_) => Err("this statement is not supported".to_owned()),
    }
}

/// SQLSTATEs of the messages of PostgreSQL's grammar and scanner that are no syntax errors, by
/// words in the message. The first match counts.
const STATES: &[(&str, SqlState)] = &[
    ("invalid byte sequence", SqlState::CHARACTER_NOT_IN_REPERTOIRE),
    ("LIMIT #,# syntax is not supported", SqlState::SYNTAX_ERROR),
    ("sequence option", SqlState::SYNTAX_ERROR),
    ("frame start", SqlState::WINDOWING_ERROR),
    ("frame end", SqlState::WINDOWING_ERROR),
    ("unsafe use of string constant", SqlState::FEATURE_NOT_SUPPORTED),
    ("unsafe use of", SqlState::NONSTANDARD_USE_OF_ESCAPE_CHARACTER),
    ("unrecognized JSON encoding", SqlState::INVALID_PARAMETER_VALUE),
    ("unrecognized partitioning strategy", SqlState::INVALID_PARAMETER_VALUE),
    ("column number must be in range", SqlState::INVALID_PARAMETER_VALUE),
    ("precision for type float", SqlState::INVALID_PARAMETER_VALUE),
    ("for hash partition provided more than once", SqlState::DUPLICATE_OBJECT),
    ("is reserved", SqlState::RESERVED_NAME),
    ("cannot be used as a role name here", SqlState::RESERVED_NAME),
    ("not supported", SqlState::FEATURE_NOT_SUPPORTED),
    ("no longer supported", SqlState::FEATURE_NOT_SUPPORTED),
    ("not implemented", SqlState::FEATURE_NOT_SUPPORTED),
    ("not yet implemented", SqlState::FEATURE_NOT_SUPPORTED),
    ("only string constants are supported", SqlState::FEATURE_NOT_SUPPORTED),
    ("is only supported for ON DELETE actions", SqlState::FEATURE_NOT_SUPPORTED),
    ("cannot include schema elements", SqlState::FEATURE_NOT_SUPPORTED),
    ("constraints cannot be altered", SqlState::FEATURE_NOT_SUPPORTED),
    ("constraints cannot be marked", SqlState::FEATURE_NOT_SUPPORTED),
    ("current database cannot be changed", SqlState::FEATURE_NOT_SUPPORTED),
    ("aggregates cannot have output arguments", SqlState::FEATURE_NOT_SUPPORTED),
];

/// The error for a parser's message, with the position that the parser's interface leaves out.
fn describe(text: &str, message: &str) -> SqlError {
    if matches!(message, "invalid Unicode escape" | "invalid Unicode escape value")
        && let Some(fault) = unicode::fault(text)
    {
        let state = if fault.extended { SqlState::INVALID_ESCAPE_SEQUENCE } else { SqlState::SYNTAX_ERROR };
        let error = SqlError::new(state, message).at(position(text, fault.at));
        return match (message, fault.extended) {
            ("invalid Unicode escape", true) => {
                error.with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
            }
            ("invalid Unicode escape", false) => {
                error.with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
            }
            _ => error,
        };
    }
    // After these words, a message may quote any word of the text.
    let told = message.split(" at or near \"").next().unwrap_or(message);
    let found = STATES.iter().find(|(words, _)| told.contains(words));
    let code = found.map_or(SqlState::SYNTAX_ERROR, |(_, state)| *state);
    let location = if message.ends_with(" at end of input") {
        Some(text.len())
    } else {
        message
            .split_once(" at or near \"")
            .and_then(|(_, token)| locate(text, token.strip_suffix('"')?, message))
    };
    let position = location.and_then(|offset| position(text, offset));
    SqlError::new(code, message).at(position)
}

/// The offset of the token at which the parser failed.
///
/// Among several equal tokens, it is the first one with which the text's beginning fails in the
/// same way. The parser reads from left to right and stops at the first token that fits nothing.
fn locate(text: &str, token: &str, message: &str) -> Option<usize> {
    let mut places = Vec::new();
    let complete = crate::normalize::for_each_token(text, |start, _| {
        if text.as_bytes()[start..].starts_with(token.as_bytes()) {
            places.push(start);
        }
    });
    if !complete && places.is_empty() {
        return text.rfind(token);
    }
    if places.len() > 1 {
        let fails =
            |place: usize| matches!(run(&text[..place + token.len()]), Err(error) if error == message);
        let first = places.partition_point(|&place| !fails(place));
        return places.get(first).or(places.last()).copied();
    }
    places.first().copied().or_else(|| text.find(token))
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
