//! Functions that wait, and those by which one session interrupts another.

use std::time::Duration;

use runtime::awaited::{self, Awaited};
use runtime::interrupt::{self, Reason};

use super::environment::SessionEnvironment;
use crate::error::SqlError;
use crate::exec::from_txn;
use crate::types::Datum;

impl SessionEnvironment {
    /// Runs the function of this name, if it is one of these.
    pub(super) fn administer<'a>(
        &self,
        name: &str,
        arguments: &[Datum<'a>],
    ) -> Option<Result<Datum<'a>, SqlError>> {
        let signal = |reason| {
            let session = arguments.first().and_then(Datum::as_i64).and_then(|pid| u32::try_from(pid).ok());
            Ok(Datum::Bool(session.is_some_and(|session| self.shared.board.interrupt(session, reason))))
        };
        Some(match name {
            "pg_sleep" => match arguments.first() {
                Some(Datum::Float8(seconds)) => {
                    // Bounded by more than any server runs; not a number is no time.
                    let seconds = if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, 1e9) };
                    let time = Duration::from_secs_f64(seconds);
                    awaited::during(Awaited::Sleep, || interrupt::sleep(time))
                        .map(|()| Datum::Text(""))
                        .map_err(|interrupted| from_txn(interrupted.into()))
                }
                _ => Ok(Datum::Null),
            },
            "pg_cancel_backend" => signal(Reason::Cancel),
            "pg_terminate_backend" => signal(Reason::Terminate),
            // There are none to be held.
            "pg_advisory_unlock_all" => Ok(Datum::Text("")),
            _ => return None,
        })
    }
}
