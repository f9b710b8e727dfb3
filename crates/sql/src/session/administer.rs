//! Functions that wait, functions by which one session interrupts another, and functions that name
//! the sessions another one waits for. Functions that switch the lock profiler and the wait
//! history.

use std::ops::RangeInclusive;
use std::time::Duration;

use bumpalo::Bump;
use runtime::interrupt::{self, Reason};
use runtime::wait_event::{self, WaitEvent};

use super::environment::SessionEnvironment;
use crate::shared::wait_history;
use execution::from_txn;
use sync::profile;
use values::error::{SqlError, SqlState};
use values::types::{ArrayBuilder, Datum, oid};

/// Milliseconds between two samples of the wait history.
const INTERVALS: RangeInclusive<i64> = 1..=3_600_000;

impl SessionEnvironment {
    /// Runs the function of this name, if it is one of these.
    pub(super) fn administer<'a>(
        &self,
        name: &str,
        arguments: &[Datum<'a>],
        arena: &'a Bump,
    ) -> Option<Result<Datum<'a>, SqlError>> {
        let session = || arguments.first().and_then(Datum::as_i64).and_then(|pid| u32::try_from(pid).ok());
        let blocking = || session().map_or_else(Vec::new, |pid| self.shared.engine.blocking(pid));
        let signal = |reason| {
            let session = session();
            Ok(Datum::Bool(session.is_some_and(|session| self.shared.activity.interrupt(session, reason))))
        };
        // Every role is a superuser, so every role may switch them.
        let switch = |action: &dyn Fn()| {
            action();
            Ok(Datum::Text(""))
        };
        Some(match name {
            "pg_sleep" => match arguments.first() {
                Some(Datum::Float8(seconds)) => {
                    // The bound, 1e9 s, is longer than any server runs. NaN counts as 0.
                    let seconds = if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, 1e9) };
                    let time = Duration::from_secs_f64(seconds);
                    wait_event::during(WaitEvent::Sleep, || interrupt::sleep(time))
                        .map(|()| Datum::Text(""))
                        .map_err(|interrupted| from_txn(interrupted.into()))
                }
                _ => Ok(Datum::Null),
            },
            "pg_cancel_backend" => signal(Reason::Cancel),
            "pg_terminate_backend" => signal(Reason::Terminate),
            "allcore_lock_profile_enable" => switch(&|| profile::enable(runtime::time::precise)),
            "allcore_lock_profile_disable" => switch(&profile::disable),
            "allcore_lock_profile_reset" => switch(&profile::reset),
            "allcore_wait_history_start" => match arguments.first().and_then(Datum::as_i64) {
                Some(millis) => self.start_wait_history(millis).map(|()| Datum::Text("")),
                None => Ok(Datum::Null),
            },
            "allcore_wait_history_stop" => switch(&|| self.shared.wait_history.stop()),
            "allcore_wait_history_reset" => switch(&|| self.shared.wait_history.reset()),
            "pg_blocking_pids" => {
                let mut pids = ArrayBuilder::new(oid::INT4);
                let pushed = blocking().iter().try_for_each(|pid| pids.push(Datum::Int4(*pid as i32)));
                pushed.and_then(|()| pids.array_in(arena))
            }
            "pg_isolation_test_session_is_blocked" => {
                let Some(Datum::Array(interesting)) = arguments.get(1) else { return Some(Ok(Datum::Null)) };
                let blocking = blocking();
                let among = |pid: Datum<'_>| {
                    pid.as_i64().is_some_and(|pid| blocking.iter().any(|one| i64::from(*one) == pid))
                };
                let found =
                    interesting.iter().find_map(|pid| pid.map(|pid| among(pid).then_some(())).transpose());
                found.transpose().map(|found| Datum::Bool(found.is_some()))
            }
            _ => return None,
        })
    }

    fn start_wait_history(&self, millis: i64) -> Result<(), SqlError> {
        if !INTERVALS.contains(&millis) {
            let (least, most) = (INTERVALS.start(), INTERVALS.end());
            let message = format!("interval must be between {least} and {most} milliseconds");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        wait_history::start(&self.shared, Duration::from_millis(millis.unsigned_abs()));
        Ok(())
    }
}
