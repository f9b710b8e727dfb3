//! The functions of advisory locks. This module turns names and arguments into requests; `txn`
//! keeps the locks and counts their holders.

use txn::{AdvisoryKey, AdvisoryLock, Wait};

use super::environment::{Deferred, SessionEnvironment};
use super::locks::ADVISORY_MODES;
use execution::client::Notice;
use execution::from_txn;
use values::error::{SqlError, SqlState};
use values::types::Datum;

impl SessionEnvironment {
    /// Runs the function of this name, if it is one of these.
    pub(super) fn advisory<'a>(
        &self,
        name: &str,
        arguments: &[Datum<'a>],
    ) -> Option<Result<Datum<'a>, SqlError>> {
        let (wait, what) = match name.strip_prefix("pg_try_advisory_") {
            Some(what) => (Wait::Skip, what),
            None => (Wait::Block, name.strip_prefix("pg_advisory_")?),
        };
        if what == "unlock_all" {
            self.txn.unlock_all_advisory();
            return Some(Ok(Datum::Text("")));
        }
        let (what, lock) = match what.strip_suffix("_shared") {
            Some(what) => (what, AdvisoryLock::Share),
            None => (what, AdvisoryLock::Exclusive),
        };
        let key = self.advisory_key(arguments)?;
        Some(match what {
            "unlock" => Ok(Datum::Bool(self.unlock_advisory(key, lock))),
            "lock" | "xact_lock" => {
                let taken = self.txn.lock_advisory(key, lock, what == "lock", wait);
                let shown = |taken| if wait == Wait::Skip { Datum::Bool(taken) } else { Datum::Text("") };
                taken.map(shown).map_err(from_txn)
            }
            _ => return None,
        })
    }

    /// A key of one argument never equals a key of two.
    fn advisory_key(&self, arguments: &[Datum<'_>]) -> Option<AdvisoryKey> {
        let (key, class) = match arguments {
            [Datum::Int8(key)] => (*key as u64, 1),
            [Datum::Int4(high), Datum::Int4(low)] => {
                (u64::from(*high as u32) << 32 | u64::from(*low as u32), 2)
            }
            _ => return None,
        };
        Some(AdvisoryKey { database: self.definitions.oid, key, class })
    }

    fn unlock_advisory(&self, key: AdvisoryKey, lock: AdvisoryLock) -> bool {
        let held = self.txn.unlock_advisory(key, lock);
        if !held {
            let mode = ADVISORY_MODES[lock as usize];
            let message = format!("you don't own a lock of type {mode}");
            self.defer(Deferred::Notice(Notice::warning(SqlState::WARNING, message)));
        }
        held
    }
}
