//! A transaction's characteristics: isolation level, read only, deferrable.
//!
//! Those of the running transaction lie in the session's environment, where functions ask for them.
//! What must hold:
//!
//! 1. A new transaction takes the session's defaults; BEGIN and SET TRANSACTION change them for
//!    this transaction.
//! 2. A savepoint keeps the characteristics. RELEASE, ROLLBACK TO and an error restore those of the
//!    savepoint.
//! 3. An error outside of savepoints restores those the transaction was opened with, before BEGIN
//!    and SET TRANSACTION changed them. AND CHAIN opens a transaction with those of the one before.
//! 4. The isolation level, READ WRITE and DEFERRABLE are settled by the first query and by the
//!    first savepoint.

use super::Session;
use execution::client::{Client, Notice};
use query::plan::{Command, Isolation, TransactionModes};
use values::error::{SqlError, SqlState};

/// The characteristics of one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Characteristics {
    pub isolation: Isolation,
    pub read_only: bool,
    /// Without effect below SERIALIZABLE, as in PostgreSQL.
    pub deferrable: bool,
}

/// The settings that show the running transaction's characteristics.
pub(super) const SETTINGS: [&str; 3] =
    ["transaction_deferrable", "transaction_isolation", "transaction_read_only"];

impl Characteristics {
    /// PostgreSQL's defaults.
    pub const PLAIN: Characteristics =
        Characteristics { isolation: Isolation::ReadCommitted, read_only: false, deferrable: false };

    /// These characteristics, with the ones that `modes` names replaced.
    pub fn with(self, modes: TransactionModes) -> Characteristics {
        Characteristics {
            isolation: modes.isolation.unwrap_or(self.isolation),
            read_only: modes.read_only.unwrap_or(self.read_only),
            deferrable: modes.deferrable.unwrap_or(self.deferrable),
        }
    }

    /// The value of one of [`SETTINGS`]; None for other names.
    pub(super) fn setting(&self, name: &str) -> Option<&'static str> {
        Some(match name {
            "transaction_isolation" => isolation_name(self.isolation),
            "transaction_read_only" => on_off(self.read_only),
            "transaction_deferrable" => on_off(self.deferrable),
            _ => return None,
        })
    }
}

fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "read uncommitted",
        Isolation::ReadCommitted => "read committed",
        Isolation::RepeatableRead => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn late(message: &str) -> SqlError {
    SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message)
}

/// Whether a command settles the running transaction's characteristics. The commands for which
/// PostgreSQL takes a snapshot do.
pub(super) fn settles(command: &Command) -> bool {
    !matches!(
        command,
        Command::Set { .. }
            | Command::Reset(_)
            | Command::Show(_)
            | Command::Fetch { .. }
            | Command::LockTable { .. }
            | Command::Checkpoint
    )
}

/// 0A000 for an isolation level that is not built.
pub(super) fn refuse_serializable(modes: TransactionModes) -> Result<(), SqlError> {
    match modes.isolation {
        Some(Isolation::Serializable) => Err(SqlError::unsupported("isolation level SERIALIZABLE")),
        _ => Ok(()),
    }
}

/// The engine's isolation level for one of SQL's.
pub(super) fn txn_isolation(isolation: Isolation) -> txn::Isolation {
    match isolation {
        Isolation::ReadUncommitted | Isolation::ReadCommitted => txn::Isolation::ReadCommitted,
        Isolation::RepeatableRead | Isolation::Serializable => txn::Isolation::RepeatableRead,
    }
}

/// Error 25006: `what` would write in a read-only transaction.
#[cold]
pub(super) fn read_only_error(what: &str) -> SqlError {
    let message = format!("cannot execute {what} in a read-only transaction");
    SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, message)
}

impl Session {
    /// SET SESSION CHARACTERISTICS.
    pub(super) fn set_default_modes(&mut self, modes: TransactionModes) -> Result<(), SqlError> {
        refuse_serializable(modes)?;
        // A rollback restores settings, so they need a transaction of their own. Without one, the
        // next transaction that fails would restore these.
        self.ensure_transaction();
        let defaults = [
            ("default_transaction_isolation", modes.isolation.map(isolation_name)),
            ("default_transaction_read_only", modes.read_only.map(on_off)),
            ("default_transaction_deferrable", modes.deferrable.map(on_off)),
        ];
        for (name, value) in defaults {
            let Some(value) = value else { continue };
            self.environment.table.set(name, Some(value), false)?;
        }
        Ok(())
    }

    /// SET TRANSACTION.
    pub(super) fn set_transaction(
        &mut self,
        modes: TransactionModes,
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        self.warn_outside_block("SET TRANSACTION", client);
        self.change_characteristics(modes)
    }

    /// Warns that a statement's effect ends with the statement itself.
    pub(super) fn warn_outside_block(&self, what: &str, client: &mut dyn Client) {
        if self.block.outlasts_statement() {
            return;
        }
        let message = format!("{what} can only be used in transaction blocks");
        self.tell(client, &Notice::warning(SqlState::NO_ACTIVE_SQL_TRANSACTION, &message));
    }

    /// Changes the running transaction's characteristics, as far as they are not settled yet.
    pub(super) fn change_characteristics(&mut self, modes: TransactionModes) -> Result<(), SqlError> {
        refuse_serializable(modes)?;
        self.ensure_transaction();
        let now = self.environment.characteristics;
        let next = now.with(modes);
        let (queried, inside) = (self.block.is_queried(), self.block.has_savepoints());
        if next.isolation != now.isolation {
            if queried {
                return Err(late("SET TRANSACTION ISOLATION LEVEL must be called before any query"));
            }
            if inside {
                return Err(late("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"));
            }
        }
        if now.read_only && !next.read_only {
            if inside {
                return Err(late("cannot set transaction read-write mode inside a read-only transaction"));
            }
            if queried {
                return Err(late("transaction read-write mode must be set before any query"));
            }
        }
        if modes.deferrable.is_some() {
            if inside {
                return Err(late(
                    "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction",
                ));
            }
            if queried {
                return Err(late("SET TRANSACTION [NOT] DEFERRABLE must be called before any query"));
            }
        }
        if next.isolation != now.isolation {
            self.environment.txn.set_isolation(txn_isolation(next.isolation));
        }
        self.environment.characteristics = next;
        Ok(())
    }
}
