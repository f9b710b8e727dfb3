//! Memory for a session's messages.
//!
//! A message for whose length there is no memory is thrown away as it comes. When all of it has
//! come, it is answered with 53200, and the session goes on after it.

use super::{Connection, Fault, Live};
use crate::encode::{self, Severity};
use crate::wire::Wire;
use runtime::account;
use runtime::net::SessionIo;
use sql::{SqlError, SqlState};

/// Most memory of an unfinished message, as a multiple of its bytes: a buffer grows by doubling.
const INPUT_SHARE: usize = 2;

/// Asks for this many bytes before they are used.
#[inline]
pub(super) fn ask(bytes: usize) -> Result<(), Fault> {
    account::ask(bytes).map_err(|by| SqlError::interrupted(by).into())
}

impl Connection {
    /// Whether an idle session holds much memory that others need, apart from a message that has
    /// not come completely.
    pub(super) fn holds_much_idle(&self, io: &SessionIo<'_>) -> bool {
        let input = self.tls.as_ref().map_or(io.input(), |tls| tls.input());
        let of_input = i64::try_from(INPUT_SHARE * input.len()).unwrap_or(i64::MAX);
        account::is_short() && account::is_large(io.interrupt().held() - of_input)
    }
}

impl Live {
    /// Whether there is no memory for the rest of a message that has begun to come.
    pub(super) fn refuses(&mut self, wire: &Wire<'_, '_>) -> bool {
        let input = wire.input();
        let Some(head) = input.first_chunk::<5>() else { return false };
        let total = 1 + u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        // The bytes that are here will be copied, too.
        let refused = account::ask(total.saturating_sub(input.len()).max(input.len())).is_err();
        if refused {
            self.refused = Some((head[0], total));
        }
        refused
    }

    /// Throws away the bytes that have come of a refused message. After the last of them it sends
    /// the client the error; false before.
    #[cold]
    pub(super) fn pass_refused(&mut self, wire: &mut Wire<'_, '_>) -> bool {
        let Some((kind, left)) = self.refused else { return true };
        let here = wire.input().len().min(left);
        wire.consume(here);
        if here < left {
            self.refused = Some((kind, left - here));
            return false;
        }
        self.refused = None;
        self.heard = true;
        // Left over from a COPY that failed, or from an extended query, as in `serve`.
        if self.skipping || matches!(kind, b'd' | b'c' | b'f') {
            return true;
        }
        self.session.fail();
        let fault = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail("There is no memory for a message of this length.");
        encode::error(wire.output(), Severity::Error, &fault);
        if kind == b'Q' {
            self.ready(wire);
        } else {
            self.skipping = true;
        }
        true
    }
}
