//! A simulated client, as a state machine that a driver steps.
//!
//! A workload makes one [`Client`] for each connection. The driver calls [`Client::next`] whenever
//! the client's last step is over, does the returned [`Step`], and calls it again. A client never
//! touches a socket or a clock, so the same one runs under every driver and in tests without a
//! server.

pub mod random;
#[cfg(test)]
pub mod stepped;

pub use random::Random;

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::time::Duration;

/// A statement of a workload, by its index among that workload's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatementId(pub u16);

/// A statement with places for parameters: `pieces[0] $1 pieces[1] $2 ...`. A driver writes the
/// places as its protocol has them (`$1`, `?`, or the values themselves).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// One more than there are parameters.
    pub pieces: Vec<String>,
    pub prepare: Prepare,
    pub wanted: Wanted,
}

impl Statement {
    /// A statement with a `?` for each parameter.
    pub fn new(text: &str, prepare: Prepare, wanted: Wanted) -> Self {
        Self { pieces: text.split('?').map(str::to_owned).collect(), prepare, wanted }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepare {
    /// Never: every protocol sends it as text (BEGIN and END, which a protocol may be unable to
    /// prepare).
    Never,
    /// When the connection is set up.
    AtConnect,
}

/// The part of a statement's reply that a client reads; a driver skips the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    Rows,
    NamedRows,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Run this statement with the parameters in [`Turn::params`]; `next` is called with its
    /// [`Reply`].
    Run(StatementId),
    Sleep(Duration),
    /// Set up a connection in place of the present one, if any. A client begins with a connection.
    Connect,
    /// Send a good-bye and end the connection. A step that needs a connection comes after a
    /// `Connect`.
    Leave,
    /// The transaction is over. The number is its kind: its index among the workload's kinds. The
    /// driver counts the transaction once the queued statements are answered. It begins the next
    /// one when that is due.
    Done(u8),
    /// The client can't go on, for the reason in the text. It ends its connection; the other
    /// clients go on.
    Abort(Cow<'static, str>),
}

/// A driver's input to a client at each step.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The thread's own random numbers.
    pub random: &'a mut Random,
    /// Empty; filled by the client before it returns [`Step::Run`].
    pub params: &'a mut Params,
    /// The reply of the statement that ran last; empty at the first step.
    pub reply: &'a Reply,
}

pub trait Client: Send {
    fn next(&mut self, turn: Turn<'_>) -> Step;

    /// The running transaction failed and was rolled back. If `again`, the next call of `next`
    /// begins it again with the same choices. This is for a deadlock or a serialization failure,
    /// where a repetition may succeed. Otherwise that call begins a new transaction. Returns the
    /// kind of the transaction that failed.
    fn failed(&mut self, again: bool) -> u8;
}

/// Parameters of a statement, as text; written without allocation once warm.
#[derive(Debug, Clone, Default)]
pub struct Params {
    all: String,
    /// Where each ends, and its form.
    ends: Vec<(usize, Form)>,
}

/// The forms of a [`Param`].
#[derive(Debug, Clone, Copy)]
enum Form {
    Null,
    Text,
    Verbatim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<'a> {
    Null,
    /// A text: a driver quotes it where it puts it into a statement.
    Text(&'a [u8]),
    /// A number or another piece of a statement: a driver never quotes it.
    Verbatim(&'a [u8]),
}

impl Params {
    pub fn clear(&mut self) {
        self.all.clear();
        self.ends.clear();
    }

    fn push(&mut self, form: Form, write: impl FnOnce(&mut String)) {
        write(&mut self.all);
        self.ends.push((self.all.len(), form));
    }

    pub fn text(&mut self, text: &str) {
        self.text_by(|all| all.push_str(text));
    }

    /// Adds the text that `write` appends.
    pub(crate) fn text_by(&mut self, write: impl FnOnce(&mut String)) {
        self.push(Form::Text, write);
    }

    /// Adds a piece that a driver does not quote where it puts it into a statement.
    pub fn verbatim(&mut self, text: &str) {
        self.push(Form::Verbatim, |all| all.push_str(text));
    }

    /// Adds such a piece from a number in this format.
    pub(crate) fn number(&mut self, number: fmt::Arguments<'_>) {
        // Writing to a String can't fail.
        self.push(Form::Verbatim, |all| _ = all.write_fmt(number));
    }

    pub fn int(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        self.verbatim(digits.format(value));
    }

    pub(crate) fn ints(&mut self, values: &[i64]) {
        values.iter().for_each(|value| self.int(*value));
    }

    pub fn null(&mut self) {
        self.push(Form::Null, |_| ());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Param<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, form)| {
            let bytes = &self.all.as_bytes()[std::mem::replace(&mut start, end)..end];
            match form {
                Form::Null => Param::Null,
                Form::Text => Param::Text(bytes),
                Form::Verbatim => Param::Verbatim(bytes),
            }
        })
    }
}

/// A statement's answer: its rows as text, as far as the client wants them ([`Wanted`]). The last
/// of several results counts.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    bytes: Vec<u8>,
    /// Where each value ends, row after row; `None` for a NULL.
    ends: Vec<Option<u32>>,
    names: String,
    name_ends: Vec<u32>,
    columns: usize,
}

impl Reply {
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.names.clear();
        self.name_ends.clear();
        self.columns = 0;
    }

    /// Makes it equal to another reply; without allocation once it has held as much.
    pub(crate) fn copy(&mut self, from: &Self) {
        self.bytes.clone_from(&from.bytes);
        self.ends.clone_from(&from.ends);
        self.names.clone_from(&from.names);
        self.name_ends.clone_from(&from.name_ends);
        self.columns = from.columns;
    }

    /// Begins a result with this many columns, in place of an earlier one. The driver calls it when
    /// a statement's columns become known. Then it calls `name` for each column where the client
    /// wants names, and `push` for each value.
    pub fn set_columns(&mut self, columns: usize) {
        self.clear();
        self.columns = columns;
    }

    pub fn name(&mut self, name: &str) {
        self.names.push_str(name);
        self.name_ends.push(self.names.len() as u32);
    }

    /// Adds the next value, row after row.
    pub fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push(value.map(|_| self.bytes.len() as u32));
    }

    pub fn rows(&self) -> usize {
        self.ends.len().checked_div(self.columns).unwrap_or(0)
    }

    /// Columns of a row; 0 if the statement returns none.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// A column's name; `None` where the client did not want names, and outside the result.
    pub fn column_name(&self, column: usize) -> Option<&str> {
        let end = *self.name_ends.get(column)? as usize;
        let start = column.checked_sub(1).map_or(0, |before| self.name_ends[before] as usize);
        self.names.get(start..end)
    }

    /// A value as text; `None` for a NULL, for bytes that are no text, and outside the result.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        let index = (column < self.columns).then_some(row * self.columns + column)?;
        let end = (*self.ends.get(index)?)? as usize;
        let start = self.ends[..index].iter().rev().find_map(|end| *end).unwrap_or(0) as usize;
        std::str::from_utf8(&self.bytes[start..end]).ok()
    }

    pub fn int(&self, row: usize, column: usize) -> Option<i64> {
        self.text(row, column)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_and_replies_keep_nulls_apart_from_empty_texts() {
        let mut params = Params::default();
        params.int(-7);
        params.null();
        params.text("");
        params.text("x");
        let all: Vec<_> = params.iter().collect();
        let texts = [Param::Text(b""), Param::Text(b"x")];
        assert_eq!(all, [&[Param::Verbatim(b"-7"), Param::Null][..], &texts].concat());

        let mut reply = Reply::default();
        reply.set_columns(2);
        for value in [None, Some(&b"ab"[..]), Some(b""), Some(b"12")] {
            reply.push(value);
        }
        assert_eq!(reply.rows(), 2);
        assert_eq!((reply.text(0, 0), reply.text(0, 1)), (None, Some("ab")));
        assert_eq!((reply.text(1, 0), reply.int(1, 1)), (Some(""), Some(12)));
        assert_eq!((reply.text(2, 0), reply.text(0, 2)), (None, None));
        reply.set_columns(2);
        assert_eq!((reply.rows(), reply.text(0, 1)), (0, None), "the last counts");
        reply.name("b");
        reply.name("cc");
        assert_eq!([0, 1, 2].map(|at| reply.column_name(at)), [Some("b"), Some("cc"), None]);
    }
}
