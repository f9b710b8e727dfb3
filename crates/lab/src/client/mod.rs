//! What one simulated client does, as a state machine that a driver steps.
//!
//! A workload makes one [`Client`] for each connection. The driver calls [`Client::next`] whenever the client's last step
//! is over, does what the returned [`Step`] says, and calls it again. A client never touches a socket or a clock, so the
//! same one runs under every driver and in tests without a server.

mod random;

pub use random::Random;

use std::time::Duration;

/// A statement of a workload: its place in [`crate::workload::Workload::statements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatementId(pub u16);

/// What a client wants done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Run this statement with the parameters in [`Turn::params`]; `next` is called with its [`Reply`].
    Run(StatementId),
    /// Send this statement without waiting for its reply; the driver waits at the next `Sync`. Where the driver or the
    /// protocol can't pipeline, it is a `Run` whose reply is not given.
    Queue(StatementId),
    /// Wait for the replies of all queued statements.
    Sync,
    /// Do nothing for so long.
    Sleep(Duration),
    /// The transaction is over; of a mix, its kind (an index into [`crate::workload::Workload::kinds`]). The driver counts
    /// it once what was queued is answered, and begins the next when that is due.
    Done(u8),
    /// The client can't go on: the text says why. It ends its connection, the others go on.
    Abort(&'static str),
}

/// What a driver gives a client at each step.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The thread's own random numbers.
    pub random: &'a mut Random,
    /// Empty; filled by the client before it returns [`Step::Run`] or [`Step::Queue`].
    pub params: &'a mut Params,
    /// The reply of the statement that ran last; empty at the first step.
    pub reply: &'a Reply,
}

/// One simulated client.
pub trait Client: Send {
    /// The next step.
    fn next(&mut self, turn: Turn<'_>) -> Step;

    /// The transaction that was under way failed and was rolled back: the next call of `next` begins it again with the
    /// same choices if `again` (after a deadlock or a serialization failure, which a repetition may overcome), a new one
    /// otherwise. Returns the kind of the transaction that failed.
    fn failed(&mut self, again: bool) -> u8;
}

/// Parameters of a statement, as text; written without allocation once warm.
#[derive(Debug, Clone, Default)]
pub struct Params {
    bytes: Vec<u8>,
    ends: Vec<End>,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Null,
    /// A text; where it ends.
    Text(u32),
    /// What stands in a statement's text as it is; where it ends.
    Verbatim(u32),
}

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Param<'a> {
    /// NULL.
    Null,
    /// A text: to be quoted where it becomes part of a statement.
    Text(&'a [u8]),
    /// A number or another piece of a statement: never quoted.
    Verbatim(&'a [u8]),
}

impl Params {
    /// Takes all out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(End::Text(self.bytes.len() as u32));
    }

    /// Adds what is not quoted where it becomes part of a statement.
    pub fn verbatim(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.ends.push(End::Verbatim(self.bytes.len() as u32));
    }

    /// Adds a number.
    pub fn int(&mut self, value: i64) {
        let mut digits = itoa::Buffer::new();
        self.verbatim(digits.format(value));
    }

    /// Adds a NULL.
    pub fn null(&mut self) {
        self.ends.push(End::Null);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Each in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Param<'_>> {
        let mut start = 0;
        let mut upto = move |end: u32| &self.bytes[std::mem::replace(&mut start, end as usize)..end as usize];
        self.ends.iter().map(move |end| match *end {
            End::Null => Param::Null,
            End::Text(end) => Param::Text(upto(end)),
            End::Verbatim(end) => Param::Verbatim(upto(end)),
        })
    }
}

/// What a statement answered: its rows as text, or how many rows it changed.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    bytes: Vec<u8>,
    /// Where each value ends, row after row; `None` for a NULL.
    ends: Vec<Option<u32>>,
    columns: usize,
    affected: u64,
}

impl Reply {
    /// Takes all out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.columns = 0;
        self.affected = 0;
    }

    /// Begins a result of so many columns.
    pub fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Adds the next value of the row, then of the next row.
    pub fn push(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => {
                self.bytes.extend_from_slice(value);
                self.ends.push(Some(self.bytes.len() as u32));
            }
            None => self.ends.push(None),
        }
    }

    /// Notes how many rows were changed.
    pub fn set_affected(&mut self, rows: u64) {
        self.affected = rows;
    }

    /// Rows changed.
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// Rows returned.
    pub fn rows(&self) -> usize {
        self.ends.len().checked_div(self.columns).unwrap_or(0)
    }

    /// Columns of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// A value as text; `None` for a NULL, for bytes that are no text, and outside the result.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        let index = (column < self.columns).then(|| row * self.columns + column)?;
        let end = (*self.ends.get(index)?)? as usize;
        let start = self.ends[..index].iter().rev().find_map(|end| *end).unwrap_or(0) as usize;
        std::str::from_utf8(&self.bytes[start..end]).ok()
    }

    /// A value as a whole number.
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
        assert_eq!(all, [Param::Verbatim(b"-7"), Param::Null, Param::Text(b""), Param::Text(b"x")]);

        let mut reply = Reply::default();
        reply.set_columns(2);
        for value in [None, Some(&b"ab"[..]), Some(b""), Some(b"12")] {
            reply.push(value);
        }
        assert_eq!(reply.rows(), 2);
        assert_eq!((reply.text(0, 0), reply.text(0, 1)), (None, Some("ab")));
        assert_eq!((reply.text(1, 0), reply.int(1, 1)), (Some(""), Some(12)));
        assert_eq!((reply.text(2, 0), reply.text(0, 2)), (None, None));
    }
}
