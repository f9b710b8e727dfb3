//! Definitions: CREATE, ALTER, DROP, TRUNCATE. All transactional.
//!
//! What must hold:
//!
//! 1. A command takes the locks that PostgreSQL takes, looks the definition up again once it holds
//!    them, and puts it back whole. It goes into the transaction's catalog and the system tree
//!    ([`Session::define`]).
//! 2. Rows are rewritten by filling new trees from a query over the old ones. So a failure leaves
//!    the old trees as they were.

mod added;
mod alter;
mod columns;
mod constraint;
mod create;
mod dependents;
mod drop;
mod identity;
mod kept;
mod names;
mod owner;
mod reindex;
mod retype;
mod rewrite;
mod sequence;
mod statistics;

use txn::{Direction, Range, TableLock, Wait};

pub(super) use create::{schema_for_table, table_as};

use super::Session;
use catalog::{INFORMATION_SCHEMA, Table};
use execution::client::{Client, Notice};
use execution::keys::table_tree;
use execution::{Executor, from_txn};
use query::plan::{Command, ObjectKind, StatisticsCommand};
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// The OID of pg_database, which stands for the folder's list of databases.
const PG_DATABASE: u32 = 1262;

/// Runs a definition command and completes it.
pub(super) fn run(
    session: &mut Session,
    command: &Command,
    values: &[Datum<'_>],
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    // PostgreSQL's REINDEX writes in a read-only transaction: it changes no data.
    if !matches!(command, Command::Reindex { .. }) {
        session.environment.refuse_read_only(name_of(command))?;
    }
    let tag = match command {
        Command::CreateDatabase { name, owner } => create::database(session, name, owner.as_deref())?,
        Command::AlterOwner { database, name, role } => {
            owner::alter(session, *database, name, role.as_deref())?
        }
        Command::DropDatabase { name, if_exists } => drop::database(session, name, *if_exists, client)?,
        Command::CreateSchema { name, if_not_exists, owner } => {
            create::schema(session, (name, owner.as_deref()), *if_not_exists, client)?
        }
        Command::CreateTable(table) => create::table(session, table, client)?,
        Command::CreateTableAs { table, query, with_data, .. } => {
            let tag_without_data = (!with_data).then_some("CREATE TABLE AS");
            return create::table_as(session, (table, query, tag_without_data), values, client).map(drop);
        }
        Command::CreateTableAsExecute { table, call, with_data } => {
            return session.create_from_prepared((table, call, *with_data), values, client);
        }
        Command::CreateIndex(index) => create::index(session, index, client)?,
        Command::CreateSequence { name, if_not_exists, options } => {
            sequence::create(session, (name, *if_not_exists), options, client)?
        }
        Command::AlterSequence { name, if_exists, options } => {
            sequence::alter(session, (name, *if_exists), options, client)?
        }
        Command::Statistics(command) => statistics::run(session, command, client)?,
        Command::CreateView { .. } => return Err(SqlError::unsupported("CREATE VIEW")),
        Command::Drop { kind, names, if_exists, cascade, concurrently } => {
            if *concurrently {
                drop::check_concurrent(session, names, *cascade)?;
            }
            drop::objects(session, *kind, names, (*if_exists, *cascade), client)?
        }
        Command::AlterTable { name, if_exists, actions, tag } => {
            alter::table(session, (name, *if_exists, tag), actions, client)?;
            tag
        }
        Command::Truncate { tables, restart_identity, cascade } => {
            drop::truncate(session, tables, *restart_identity, *cascade, client)?
        }
        Command::Reindex { what, concurrently } => {
            if *concurrently {
                session.refuse_block("REINDEX CONCURRENTLY")?;
            }
            reindex::run(session, what, *concurrently)?
        }
        _ => return Err(SqlError::internal("a command without a way to run it")),
    };
    client.complete(tag);
    Ok(())
}

/// A command's name in errors.
fn name_of(command: &Command) -> &'static str {
    match command {
        Command::AlterOwner { database: false, .. } => "ALTER SCHEMA",
        Command::AlterOwner { database: true, .. } => "ALTER DATABASE",
        Command::CreateDatabase { .. } => "CREATE DATABASE",
        Command::DropDatabase { .. } => "DROP DATABASE",
        Command::CreateSchema { .. } => "CREATE SCHEMA",
        Command::CreateTable(_) => "CREATE TABLE",
        Command::CreateTableAs { select_into: true, .. } => "SELECT INTO",
        Command::CreateTableAs { .. } | Command::CreateTableAsExecute { .. } => "CREATE TABLE AS",
        Command::CreateIndex(_) => "CREATE INDEX",
        Command::CreateSequence { .. } => "CREATE SEQUENCE",
        Command::AlterSequence { .. } => "ALTER SEQUENCE",
        Command::Statistics(StatisticsCommand::Create(_)) => "CREATE STATISTICS",
        Command::Statistics(StatisticsCommand::Alter { .. }) => "ALTER STATISTICS",
        Command::AlterTable { tag, .. } => tag,
        Command::Truncate { .. } => "TRUNCATE TABLE",
        Command::Reindex { .. } => "REINDEX",
        Command::Drop { kind, .. } => match kind {
            ObjectKind::Table => "DROP TABLE",
            ObjectKind::Index => "DROP INDEX",
            ObjectKind::Sequence => "DROP SEQUENCE",
            ObjectKind::View => "DROP VIEW",
            ObjectKind::Schema => "DROP SCHEMA",
            ObjectKind::Statistics => "DROP STATISTICS",
        },
        _ => "this command",
    }
}

fn skipping(session: &Session, client: &mut dyn Client, message: String) {
    session.tell(client, &Notice::told(message));
}

/// Sends the notice that replaces an error for an object that exists already.
fn exists(session: &Session, client: &mut dyn Client, code: SqlState, message: &str) {
    session.tell(client, &Notice { code, ..Notice::told(format!("{message}, skipping")) });
}

impl Session {
    /// The schema of this name, or by default the one that new objects go to.
    fn target_schema(&self, name: Option<&str>) -> Result<u32, SqlError> {
        let catalog = &self.environment.catalog;
        match name {
            Some(schema) => catalog.schema(schema).map(|schema| schema.oid).ok_or_else(|| {
                SqlError::new(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist"))
            }),
            None => catalog
                .creation_schema(&self.environment.table.search_path)
                .map(|schema| schema.oid)
                .ok_or_else(|| {
                    SqlError::new(SqlState::INVALID_SCHEMA_NAME, "no schema has been selected to create in")
                }),
        }
    }

    /// Locks the schema of a new object until the transaction ends, and takes the newest
    /// definitions.
    fn lock_schema(&mut self, name: Option<&str>) -> Result<u32, SqlError> {
        // DROP SCHEMA locks it exclusively.
        let schema = self.lock_found(TableLock::AccessShare, Wait::Block, |session| {
            let schema = session.target_schema(name)?;
            Ok(Some((schema, schema)))
        })?;
        self.environment.txn.statement_start().map_err(from_txn)?;
        match schema {
            None => Err(SqlError::internal("a schema without an error")),
            // Names in a system schema stand for its own relations only.
            Some(INFORMATION_SCHEMA) => {
                Err(SqlError::unsupported("an object of users in schema \"information_schema\""))
            }
            Some(schema) => Ok(schema),
        }
    }

    /// Keeps other sessions from making or dropping a database until the transaction ends.
    fn lock_databases(&self) -> Result<(), SqlError> {
        let lock = TableLock::ShareRowExclusive;
        self.environment.txn.lock_table(PG_DATABASE, lock, Wait::Block).map_err(from_txn)?;
        Ok(())
    }

    /// Locks a table, sequence or schema. Then takes the newest definitions and snapshot.
    fn lock_definition(&mut self, oid: u32, lock: TableLock) -> Result<(), SqlError> {
        safe_point()?;
        self.environment.txn.lock_table(oid, lock, Wait::Block).map_err(from_txn)?;
        self.refresh_catalog();
        self.environment.txn.statement_start().map_err(from_txn)
    }

    /// Takes the snapshot for a walk over the rows of a locked table, which fills a new tree or
    /// checks a constraint. In repeatable read the snapshot may be old. Fails then unless it sees
    /// exactly the newest rows, because rows that it misses would be lost.
    fn see_rows_of(&self, table: &Table) -> Result<(), SqlError> {
        self.environment.txn.statement_start().map_err(from_txn)?;
        if !self.environment.txn.keeps_snapshot() {
            return Ok(());
        }
        let scan = || self.environment.txn.scan(&table_tree(table), Range::ALL, Direction::Forward);
        let mut seen = scan();
        self.environment.txn.with_newest(|| {
            let mut present = scan();
            loop {
                runtime::interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
                runtime::fiber::safe_point();
                let seen =
                    seen.next(&self.environment.txn).map_err(from_txn)?.map(|(key, _, stamp)| (key, stamp));
                let present = present
                    .next(&self.environment.txn)
                    .map_err(from_txn)?
                    .map(|(key, _, stamp)| (key, stamp));
                if seen != present {
                    let message = "could not serialize access due to concurrent update";
                    return Err(SqlError::new(SqlState::SERIALIZATION_FAILURE, message));
                }
                if seen.is_none() {
                    return Ok(());
                }
            }
        })
    }

    /// The present definition of a table that this transaction has locked. Fails if the table was
    /// dropped before the lock.
    fn definition(&self, oid: u32) -> Result<Table, SqlError> {
        let table = self.environment.catalog.table(oid);
        table.map(|table| Table::clone(table)).ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation with OID {oid} does not exist"))
        })
    }

    /// Runs something with an executor of this session.
    fn executing<'s, R>(
        &'s mut self,
        body: impl FnOnce(&mut Executor<'s>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let environment = &self.environment;
        let mut cx = Executor::new(
            &self.environment.txn,
            &self.shared.row_numbers,
            &environment.catalog,
            &[],
            environment,
        );
        body(&mut cx)
    }
}

/// A safe point between two parts of a long definition: other fibers may run, and an interrupt ends
/// it.
pub(super) fn safe_point() -> Result<(), SqlError> {
    runtime::fiber::safe_point();
    runtime::interrupt::check().map_err(values::SqlError::interrupted)
}
