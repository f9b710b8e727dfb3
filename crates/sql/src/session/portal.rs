//! Portals: a bound statement before its run, or stopped at a row limit with the rest of its rows
//! kept.
//!
//! A portal keeps its parameters as Bind sent them. Its run reads them under the session's settings
//! of that moment, into the statement's arena.
//!
//! What must hold:
//!
//! 1. A run takes the portal out of its place and leaves an empty one there. So a named portal
//!    without a statement is one that runs, and no command may run, fetch from or close it.
//! 2. The run puts the portal back only if the place is still there. The statement itself may have
//!    ended the transaction, and the portal with it.
//! 3. A portal runs its statement once (`done`). Later runs give rows from `kept`, and a portal
//!    that `failed` gives nothing any more.
//! 4. The unnamed portal serves one statement after the other. So [`Portal::close`] resets each
//!    field that a run sets, and empties each buffer that [`Portal::open`] fills.

use std::ops::Range;
use std::sync::Arc;

use bumpalo::Bump;
use smallvec::SmallVec;

use super::plans::Planned;
use super::rows::KeptRows;
use super::suspend::CommandRows;
use values::environment::Environment;
use values::error::SqlError;
use values::types::{Datum, Type};
use values::{binary, encoding, text};

/// A parameter buffer of more bytes is freed after its statement.
const KEPT_BYTES: usize = 16 << 10;

/// A portal. It keeps parameters as the client sent them. The run reads them into the statement's
/// own arena.
#[derive(Default)]
pub(super) struct Portal {
    /// Its statement, or `None` if there is no portal. Then all other fields except the buffers are
    /// as new.
    pub planned: Option<Arc<Planned>>,
    /// Result formats as Bind has them.
    pub formats: SmallVec<[i16; 4]>,
    /// The rows not sent yet, once it was stopped at a row limit.
    pub kept: Option<KeptRows>,
    /// The columns and tag of its first run, if it is a command that returns rows.
    pub command: Option<Box<CommandRows>>,
    /// It has run to its end.
    pub done: bool,
    /// Its run ended with an error, so it never runs again.
    pub failed: bool,
    /// A cursor WITH HOLD, which outlives its transaction when that commits.
    pub held: bool,
    /// FETCH may move it backward.
    pub scrollable: bool,
    /// When the statement that made it came.
    pub created: i64,
    /// Its number among the session's named portals, in the order they were made: ROLLBACK TO a
    /// savepoint drops the later ones.
    pub number: u64,
    // Inline as far as common statements need: a portal opened by each statement should touch no
    // memory of its own.
    bytes: SmallVec<[u8; 64]>,
    parameters: SmallVec<[Option<Range<u32>>; 4]>,
    parameter_formats: SmallVec<[i16; 4]>,
}

impl Portal {
    /// Whether its statement is running. The run takes the statement out of this place.
    pub fn is_running(&self) -> bool {
        self.planned.is_none()
    }

    /// Makes it a new portal, in the buffers of the last one.
    pub fn open(
        &mut self,
        planned: Arc<Planned>,
        parameters: &[Option<&[u8]>],
        parameter_formats: &[i16],
        formats: &[i16],
    ) {
        if self.planned.is_some() {
            self.close();
        }
        self.planned = Some(planned);
        if !formats.is_empty() {
            self.formats.extend_from_slice(formats);
        }
        if !parameter_formats.is_empty() {
            self.parameter_formats.extend_from_slice(parameter_formats);
        }
        for parameter in parameters {
            self.parameters.push(parameter.map(|bytes| {
                let start = self.bytes.len() as u32;
                self.bytes.extend_from_slice(bytes);
                start..self.bytes.len() as u32
            }));
        }
    }

    /// Forgets everything but the buffers.
    pub fn close(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = SmallVec::new();
        }
        self.planned = None;
        self.kept = None;
        self.command = None;
        self.done = false;
        self.failed = false;
        self.held = false;
        self.scrollable = false;
        self.formats.clear();
        self.bytes.clear();
        self.parameters.clear();
        self.parameter_formats.clear();
    }

    /// The parameters as values of these types.
    pub fn values<'a>(
        &'a self,
        types: &[Type],
        session: &dyn Environment,
        arena: &'a Bump,
    ) -> Result<&'a [Datum<'a>], SqlError> {
        let values = arena.alloc_slice_fill_copy(types.len(), Datum::Null);
        for (at, (value, type_)) in values.iter_mut().zip(types).enumerate() {
            let Some(Some(range)) = self.parameters.get(at) else { continue };
            let bytes = &self.bytes[range.start as usize..range.end as usize];
            let format = match self.parameter_formats.as_slice() {
                [] => 0,
                [all] => *all,
                each => each.get(at).copied().unwrap_or(0),
            };
            *value = match format {
                1 => binary::parse(bytes, *type_, arena)?,
                0 => text::parse(encoding::valid_text(bytes)?, *type_, session, arena)?,
                other => {
                    return Err(SqlError::new(
                        crate::SqlState::INVALID_PARAMETER_VALUE,
                        format!("unsupported format code: {other}"),
                    ));
                }
            };
        }
        Ok(values)
    }
}
