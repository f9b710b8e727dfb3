//! Names of relations, resolved under locks as PostgreSQL does.
//!
//! A command looks a name up, locks the object and looks the name up again. A commit during the
//! wait may have given the name to another object. Then the command locks that one, and unlocks the
//! first one unless the transaction held the lock before.
//!
//! What must hold: a name stands for the locked object when the wait for its lock is over.
//!
//! A command that names relations does this name by name ([`Session::lock_found`]). A query is
//! planned first, and its plan lists the tables that it was bound to. [`Session::lock_tables`]
//! locks them in the order of the text. If a definition has changed meanwhile, the query is planned
//! again. If the binder refuses a query, [`Session::lock_resolved`] locks its tables before the
//! client gets the error.

use std::sync::Arc;

use txn::{TableGrant, TableLock, Wait};

use super::Session;
use super::define::safe_point;
use catalog::{Catalog, Relation, Table};
use execution::from_txn;
use query::compile::Refused;
use query::plan::{Body, Command, QualifiedName, Statement};
use values::error::{SqlError, SqlState};

/// The locks that a statement took for its own plans that proved stale.
#[derive(Default)]
pub(super) struct TakenLocks {
    locks: Vec<(u32, TableLock)>,
    /// The definitions that the newest of these plans was made for.
    compiled_for: Option<Arc<Catalog>>,
}

impl TakenLocks {
    /// Notes that the statement is compiled for these definitions.
    pub(super) fn compiles_for(&mut self, catalog: &Arc<Catalog>) {
        self.compiled_for = Some(Arc::clone(catalog));
    }

    /// Gives up those locks that are not `wanted` by the statement's newest plan.
    #[cold]
    fn keep(&mut self, session: &Session, wanted: &[(u32, TableLock)]) {
        self.locks.retain(|taken| {
            let kept = wanted.contains(taken);
            if !kept {
                session.environment.txn.unlock_table(taken.0, taken.1);
            }
            kept
        });
    }
}

impl Session {
    /// The relation that a name stands for now, if there is one.
    pub(super) fn find_relation(&self, name: &QualifiedName) -> Option<Relation> {
        let path = &self.environment.table.search_path;
        self.environment.catalog.relation(path, name.schema.as_deref(), &name.name)
    }

    /// The error for a name that stands for nothing.
    pub(super) fn missing(&self, name: &QualifiedName) -> SqlError {
        if let Some(schema) = &name.schema
            && self.environment.catalog.schema(schema).is_none()
        {
            let message = format!("schema \"{schema}\" does not exist");
            return SqlError::new(SqlState::INVALID_SCHEMA_NAME, message);
        }
        SqlError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", name.shown()))
    }

    /// Finds an object by a name and locks it until the transaction ends. `find` returns the object
    /// and the OID to lock. Takes the newest definitions. Returns `None` if the name stands for
    /// nothing.
    ///
    /// # Errors
    /// Those of `find` and of the wait.
    pub(super) fn lock_found<T>(
        &mut self,
        lock: TableLock,
        wait: Wait,
        find: impl Fn(&Session) -> Result<Option<(u32, T)>, SqlError>,
    ) -> Result<Option<T>, SqlError> {
        self.lock_found_as(wait, |session| Ok(find(session)?.map(|(oid, value)| ((oid, lock), value))))
    }

    /// [`Session::lock_found`] in the mode that `find` gives beside the OID.
    fn lock_found_as<T>(
        &mut self,
        wait: Wait,
        find: impl Fn(&Session) -> Result<Option<((u32, TableLock), T)>, SqlError>,
    ) -> Result<Option<T>, SqlError> {
        safe_point()?;
        self.refresh_catalog();
        let mut found = find(self)?;
        while let Some(((oid, lock), _)) = found {
            let grant = self.environment.txn.grant_table(oid, lock, wait).map_err(from_txn)?;
            self.refresh_catalog();
            found = match find(self)? {
                Some((now, value)) if now == (oid, lock) => return Ok(Some(value)),
                other => other,
            };
            if grant == TableGrant::New {
                self.environment.txn.unlock_table(oid, lock);
            }
        }
        Ok(None)
    }

    /// Locks a table by name. Returns its newest definition, or `None` if there is no such
    /// relation.
    pub(super) fn locked_table(
        &mut self,
        name: &QualifiedName,
        lock: TableLock,
    ) -> Result<Option<Arc<Table>>, SqlError> {
        let table = self.lock_found(lock, Wait::Block, |session| match session.find_relation(name) {
            None => Ok(None),
            Some(Relation::Table(table)) => Ok(Some((refuse_catalog(&table)?, table))),
            Some(_) => {
                let message = format!("\"{}\" is not a table", name.name);
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
        })?;
        self.environment.txn.statement_start().map_err(from_txn)?;
        Ok(table)
    }

    /// Locks a relation of any kind by name, for ALTER. A table or a sequence gets the mode `lock`.
    /// For an index, its table gets the mode `of_index`. Does not lock an object that `check`
    /// refuses.
    pub(super) fn locked_relation(
        &mut self,
        name: &QualifiedName,
        (lock, of_index): (TableLock, TableLock),
        check: impl Fn(&Relation) -> Result<(), SqlError>,
    ) -> Result<Option<Relation>, SqlError> {
        let found = self.lock_found_as(Wait::Block, |session| {
            let Some(found) = session.find_relation(name) else { return Ok(None) };
            check(&found)?;
            let lock = match &found {
                Relation::Table(table) => (refuse_catalog(table)?, lock),
                Relation::Sequence(sequence) => (sequence.oid, lock),
                Relation::Index(table, _) => (table.oid, of_index),
            };
            Ok(Some((lock, found)))
        })?;
        self.environment.txn.statement_start().map_err(from_txn)?;
        Ok(found)
    }

    /// Locks the table of an index by the index's name. Returns the OIDs of the table and the
    /// index, or `None` if there is no such relation.
    pub(super) fn locked_index(
        &mut self,
        name: &QualifiedName,
        lock: TableLock,
    ) -> Result<Option<(u32, u32)>, SqlError> {
        let found = self.lock_found(lock, Wait::Block, |session| match session.find_relation(name) {
            None => Ok(None),
            Some(Relation::Index(table, index)) => Ok(Some((table.oid, (table.oid, index)))),
            Some(_) => {
                let message = format!("\"{}\" is not an index", name.name);
                Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
            }
        })?;
        self.environment.txn.statement_start().map_err(from_txn)?;
        Ok(found)
    }

    /// LOCK TABLE.
    pub(super) fn lock_named(
        &mut self,
        names: &[QualifiedName],
        lock: TableLock,
        nowait: bool,
    ) -> Result<(), SqlError> {
        let wait = if nowait { Wait::NoWait } else { Wait::Block };
        for name in names {
            let kind = |kind: &str| {
                let message = format!("cannot lock relation \"{}\"", name.name);
                SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
                    .with_detail(format!("This operation is not supported for {kind}."))
            };
            let locked = self.lock_found(lock, wait, |session| match session.find_relation(name) {
                None => Ok(None),
                Some(Relation::Table(table)) => Ok(Some((table.oid, ()))),
                Some(Relation::Sequence(_)) => Err(kind("sequences")),
                Some(Relation::Index(..)) => Err(kind("indexes")),
            });
            match locked {
                Ok(Some(())) => {}
                Ok(None) => return Err(self.missing(name)),
                Err(error) if nowait && error.code == SqlState::LOCK_NOT_AVAILABLE => {
                    let message = format!("could not obtain lock on relation \"{}\"", name.shown());
                    return Err(SqlError::new(SqlState::LOCK_NOT_AVAILABLE, message));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// [`Session::lock_tables`] for a statement that has been bound to tables.
    pub(super) fn lock_tables_of(
        &mut self,
        statement: &Statement,
        taken: &mut TakenLocks,
    ) -> Result<bool, SqlError> {
        match &statement.body {
            Body::Query { .. } => self.lock_tables(statement, taken),
            Body::Command(_) if statement.locks.is_empty() && taken.locks.is_empty() => Ok(true),
            // A read-only transaction refuses a definition before it waits.
            Body::Command(command)
                if self.environment.characteristics.read_only
                    && matches!(
                        **command,
                        Command::AlterTable { .. } | Command::CreateIndex(_) | Command::CreateTable(_)
                    ) =>
            {
                Ok(true)
            }
            Body::Command(_) => self.lock_tables(statement, taken),
        }
    }

    /// Opens the transaction if need be and locks the statement's tables. Returns false if the plan
    /// is stale now. Then `taken` has the locks that were taken for it.
    ///
    /// The objects of a query stay unchanged while the transaction holds every lock that the plan
    /// asks for. A change of another object leaves the plan current. So a query is compiled at most
    /// once more for each lock that it did not hold. A name may stand for another table by then:
    /// that table is locked before the query is compiled.
    pub(super) fn lock_tables(
        &mut self,
        statement: &Statement,
        taken: &mut TakenLocks,
    ) -> Result<bool, SqlError> {
        self.note_time();
        if self.status() == b'I' {
            self.ensure_transaction();
        }
        let is_query = match &statement.body {
            Body::Query { .. } => true,
            Body::Command(command) => matches!(**command, Command::Copy(_)) || statement.analyzes_query(),
        };
        if !taken.locks.is_empty() {
            taken.keep(self, &statement.locks);
        }
        let mut held = true;
        let before = self.block.has_definitions().then(|| Arc::clone(&self.environment.catalog));
        // The catalog may be newer than the one that the plan was made for.
        if is_query {
            self.take_first_snapshot()?;
        }
        // One bit for each place in the list. A statement of more than 64 tables keeps the locks
        // beyond the 64th when it is planned again.
        let mut new = 0_u64;
        let mut locks = statement.locks.iter().enumerate();
        let mut next = locks.next();
        loop {
            if let Some((at, (table, lock))) = next {
                let grant = self.environment.txn.grant_table(*table, *lock, Wait::Block).map_err(from_txn)?;
                held &= grant != TableGrant::New;
                new |= u64::from(grant == TableGrant::New).checked_shl(at as u32).unwrap_or(0);
                next = locks.next();
            }
            self.refresh_catalog();
            let fits = match &before {
                Some(before) => Arc::ptr_eq(before, &self.environment.catalog),
                None => statement.fits(&self.environment.catalog),
            };
            if !(fits || held && is_query) {
                let is_new = |at: usize| at < 64 && new >> at & 1 != 0;
                let locks = statement.locks.iter().enumerate();
                taken.locks.extend(locks.filter(|(at, _)| is_new(*at)).map(|(_, lock)| *lock));
                self.lock_successors(&statement.locks, taken)?;
                return Ok(false);
            }
            if next.is_none() {
                return Ok(true);
            }
        }
    }

    /// For each dropped table of a stale plan, locks the table that has its name now. So the next
    /// plan finds that table unchanged, however long it takes to make.
    #[cold]
    fn lock_successors(
        &mut self,
        locks: &[(u32, TableLock)],
        taken: &mut TakenLocks,
    ) -> Result<(), SqlError> {
        let Some(before) = taken.compiled_for.take() else { return Ok(()) };
        for &(oid, lock) in locks {
            let Some(gone) = before.table(oid).filter(|_| self.environment.catalog.table(oid).is_none())
            else {
                continue;
            };
            let find = |catalog: &Catalog| match catalog.relation_in(gone.schema, &gone.name) {
                Some(Relation::Table(table)) => Some(table.oid),
                _ => None,
            };
            let mut found = find(&self.environment.catalog);
            while let Some(now) = found {
                let grant = self.environment.txn.grant_table(now, lock, Wait::Block).map_err(from_txn)?;
                self.refresh_catalog();
                found = find(&self.environment.catalog);
                if found == Some(now) {
                    if grant == TableGrant::New {
                        taken.locks.push((now, lock));
                    }
                    break;
                }
                if grant == TableGrant::New {
                    self.environment.txn.unlock_table(now, lock);
                }
            }
        }
        Ok(())
    }

    /// Locks the tables that a refused statement's names stood for. Returns `Ok` if definitions
    /// have changed meanwhile: the caller compiles the statement again.
    ///
    /// # Errors The statement's own if its names still stand for these tables, and those of the
    /// waits.
    #[cold]
    pub(super) fn lock_resolved(&mut self, refused: Refused, taken: &mut TakenLocks) -> Result<(), SqlError> {
        let Refused { error, resolved } = refused;
        let before = Arc::clone(&self.environment.catalog);
        if self.status() == b'T' && error.code != SqlState::SYNTAX_ERROR && !error.code.is_stop() {
            self.take_first_snapshot()?;
        }
        if resolved.is_empty() || self.status() == b'E' || error.code.is_stop() {
            return Err(error);
        }
        self.note_time();
        self.ensure_transaction();
        taken.keep(self, &resolved);
        for (table, lock) in &resolved {
            let grant = self.environment.txn.grant_table(*table, *lock, Wait::Block).map_err(from_txn)?;
            if grant == TableGrant::New {
                taken.locks.push((*table, *lock));
            }
            self.refresh_catalog();
            if !Arc::ptr_eq(&before, &self.environment.catalog) {
                return Ok(());
            }
        }
        Err(error)
    }
}

/// A table's OID, or error 42501 for a relation of the catalog.
fn refuse_catalog(table: &Table) -> Result<u32, SqlError> {
    if !table.is_virtual() {
        return Ok(table.oid);
    }
    let message = format!("permission denied: \"{}\" is a system catalog", table.name);
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}
