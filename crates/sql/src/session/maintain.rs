//! VACUUM and ANALYZE. What must hold: a relation is maintained under a SHARE UPDATE EXCLUSIVE
//! lock, by the definition that holds then.

use std::sync::Arc;

use txn::{TableGrant, TableLock, Wait};

use super::Session;
use super::define::safe_point;
use catalog::{Relation, Table};
use execution::client::{Client, Notice, Severity};
use execution::from_txn;
use query::plan::QualifiedName;
use values::error::{SqlError, SqlState};

/// A relation to maintain.
struct Chosen<'c> {
    /// Its OID; None for an index or a sequence, which VACUUM and ANALYZE skip.
    oid: Option<u32>,
    /// The name in the statement, with the columns to analyze. `None` if the statement names no
    /// relation.
    named: Option<&'c (QualifiedName, Vec<String>)>,
}

impl Session {
    /// VACUUM and ANALYZE. Resolves all names first, each under a lock that it then gives up. A
    /// relation stays on the list even if it loses its name afterwards.
    pub(super) fn maintain(
        &mut self,
        names: &[(QualifiedName, Vec<String>)],
        (vacuum, analyze, verbose): (bool, bool, bool),
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        if vacuum {
            self.refuse_block("VACUUM")?;
        }
        self.refresh_catalog();
        let mut chosen = Vec::new();
        if names.is_empty() {
            let tables = self.environment.catalog.tables();
            chosen.extend(tables.map(|table| Chosen { oid: Some(table.oid), named: None }));
        }
        for named in names {
            chosen.push(Chosen { oid: self.maintained(&named.0)?, named: Some(named) });
        }
        let command = if vacuum { "vacuum" } else { "analyze" };
        for Chosen { oid, named } in chosen {
            safe_point()?;
            let name = named.map_or("", |(name, _)| &name.name);
            let Some(oid) = oid else {
                let message =
                    format!("skipping \"{name}\" --- cannot {command} non-tables or special system tables");
                self.tell(client, &Notice::warning(SqlState::WARNING, message));
                continue;
            };
            self.environment
                .txn
                .lock_table(oid, TableLock::ShareUpdateExclusive, Wait::Block)
                .map_err(from_txn)?;
            // Takes the definition under the lock: the table may have been dropped, or have new
            // trees.
            self.refresh_catalog();
            match self.environment.catalog.table(oid).cloned() {
                Some(table) if table.is_virtual() => {}
                Some(table) => {
                    let columns = named.map_or(&[][..], |(_, columns)| columns);
                    self.maintain_table(&table, columns, (vacuum, analyze, verbose), client)?;
                }
                None if named.is_some() => {
                    let message = format!("skipping {command} of \"{name}\" --- relation no longer exists");
                    self.tell(client, &Notice::warning(SqlState::UNDEFINED_TABLE, message));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The table of a name, after waiting for any session that holds it exclusively. `None` for
    /// another kind of relation.
    fn maintained(&mut self, name: &QualifiedName) -> Result<Option<u32>, SqlError> {
        safe_point()?;
        self.refresh_catalog();
        loop {
            let oid = match self.find_relation(name) {
                Some(Relation::Table(table)) => table.oid,
                Some(_) => return Ok(None),
                None => return Err(self.missing(name)),
            };
            let grant = self.environment.txn.grant_table(oid, TableLock::AccessShare, Wait::Block);
            if grant.map_err(from_txn)? == TableGrant::New {
                self.environment.txn.unlock_table(oid, TableLock::AccessShare);
            }
            self.refresh_catalog();
            if matches!(self.find_relation(name), Some(Relation::Table(now)) if now.oid == oid) {
                return Ok(Some(oid));
            }
        }
    }

    fn maintain_table(
        &mut self,
        table: &Arc<Table>,
        columns: &[String],
        (vacuum, analyze, verbose): (bool, bool, bool),
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let catalog = &self.environment.catalog;
        let name = format!("{}.{}", catalog.schema_name(table.schema), table.name);
        let full = format!("{}.{name}", catalog.database.name);
        let mut tell = |message: String| {
            if verbose {
                client.notice(&Notice { severity: Severity::Info, ..Notice::told(message) });
            }
        };
        if vacuum {
            tell(format!("vacuuming \"{full}\""));
            let removed = execution::vacuum(&self.shared.engine, table)?;
            tell(format!("finished vacuuming \"{full}\": {removed} dead entries removed"));
        }
        if !analyze {
            return Ok(());
        }
        tell(format!("analyzing \"{name}\""));
        if let Some(column) = columns.iter().find(|column| table.column(column).is_none()) {
            let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        }
        self.environment.txn.statement_start().map_err(from_txn)?;
        let target = self.environment.table.get("default_statistics_target")?.parse().unwrap_or(100);
        let mut statistics = execution::analyze(&self.environment.txn, table, target)?;
        if let Some(before) = self.environment.catalog.statistics(table.oid) {
            statistics.keep_extended(&table.extended, before);
        }
        let (pages, rows) = (statistics.pages, statistics.rows);
        tell(format!("\"{}\": {pages} pages, containing {rows} live rows", table.name));
        self.define(catalog::Change::PutStatistics(table.oid, Arc::new(statistics)))?;
        self.environment.txn.statement_end();
        Ok(())
    }
}
