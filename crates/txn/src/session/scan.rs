//! Scans of visible versions.
#![allow(unused_variables, dead_code)]

use std::ops::Bound;

use crate::{Error, Stamp, TxnSession};

/// Bounds of a scan, in keys.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// Where it begins.
    pub lower: Bound<&'a [u8]>,
    /// Where it ends.
    pub upper: Bound<&'a [u8]>,
}

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the lower bound up.
    Forward,
    /// From the upper bound down.
    Backward,
}

/// A scan in progress. It keeps the snapshot it was made with, but only that snapshot's statement (or
/// [`TxnSession::pin`]) keeps what it sees alive.
pub struct Scan {}

/// A visible entry: key, payload, version.
pub type Entry<'a> = (&'a [u8], &'a [u8], Stamp);

impl Scan {
    /// The next visible entry.
    pub fn next(&mut self, session: &TxnSession) -> Result<Option<Entry<'_>>, Error> {
        todo!()
    }
}
