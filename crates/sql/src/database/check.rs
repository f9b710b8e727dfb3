//! The offline check of a data folder: every page, every tree, every index against its table.
//!
//! 1. Each page in use, as it lies in the file, has its checksum and its own number.
//! 2. Each tree keeps the rules of its nodes, and no page is reached twice.
//! 3. Each page in use belongs to a tree, to the space map, or is the first page.
//! 4. Each index holds exactly the entries that its table's rows call for. The check compares
//!    counts and sums of the entries' hashes, so the order does not matter.
//! 5. Each value out of line that a row points to has exactly its chunks, and every chunk belongs
//!    to a row ([`values`]).
//!
//! The check does not verify the meaning of values, nor foreign keys.

#[cfg(test)]
mod tests;
mod values;

use std::ops::Bound;

use txn::folder::{self, PAGE_SIZE};
use txn::trees::Tree;
use txn::{Direction, Folder, Range, TxnSession, trees};

use super::Database;
use crate::SqlError;
use crate::shared::{Shared, system};
use ::values::row::RowView;
use catalog::{Catalog, Index, Table, TreeAddress};
use execution::keys::{index_entry, table_tree, tree};
use execution::out_of_line::fetch;
use execution::{from_storage, from_txn};

/// The counts and faults of a check.
#[derive(Debug, Default, Clone)]
pub struct CheckReport {
    /// Pages in use whose checksum was verified.
    pub pages: u64,
    /// Trees, those of indexes included.
    pub trees: u64,
    /// Rows of tables.
    pub rows: u64,
    /// Entries of indexes.
    pub entries: u64,
    /// Chunks of values out of line.
    pub chunks: u64,
    /// One line for each fault; empty when all is well.
    pub faults: Vec<String>,
}

/// How far a check has come.
#[derive(Debug, Clone)]
pub enum CheckProgress {
    /// Pages verified, and the number of pages.
    Pages(u64, u64),
    /// The table or index under check.
    Object(String),
}

const ALL: Range<'static> = Range { lower: Bound::Unbounded, upper: Bound::Unbounded };

/// The number and the sum of hashes of a set of index entries.
#[derive(Default, PartialEq, Eq, Clone, Copy)]
struct EntrySum {
    count: u64,
    sum: u64,
}

impl EntrySum {
    fn add(&mut self, key: &[u8], payload: &[u8]) {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        self.count += 1;
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((key, payload));
        self.sum = self.sum.wrapping_add(hash);
    }
}

impl Database {
    /// Verifies the whole folder. No session may change it meanwhile. Not to be called on a worker.
    pub fn check(&self, progress: &mut (dyn FnMut(CheckProgress) + Send)) -> Result<CheckReport, SqlError> {
        let shared = &self.shared;
        shared.runtime.call(0, || {
            let _held_off = shared.autovacuum.hold_off();
            let mut check = Check { shared, progress, report: CheckReport::default(), reached: 0 };
            // Trees that a crash left to be freed have no table. They are no fault.
            match shared.collect_all() {
                Ok(left) => left.iter().for_each(|why| check.fault(why.to_string())),
                Err(error) => check.fault(format!("dropped trees: {error}")),
            }
            check.pages()?;
            check.system()?;
            for definitions in shared.databases() {
                check.database(&definitions.catalog())?;
            }
            check.ownership()?;
            Ok(check.report)
        })
    }
}

struct Check<'c> {
    shared: &'c Shared,
    progress: &'c mut (dyn FnMut(CheckProgress) + Send),
    report: CheckReport,
    /// Pages that trees reach.
    reached: u64,
}

impl Check<'_> {
    fn folder(&self) -> &Folder {
        self.shared.engine.folder()
    }

    fn fault(&mut self, line: String) {
        self.report.faults.push(line);
    }

    fn pages(&mut self) -> Result<(), SqlError> {
        let total = self.folder().pages().0;
        let mut bytes = runtime::file::AlignedBuf::new(PAGE_SIZE);
        for number in 0..total {
            if !self.folder().is_used(number).map_err(|error| from_storage(&error))? {
                continue;
            }
            if let Err(what) = self.folder().verify_page(number, &mut bytes) {
                self.fault(format!("page {number}: {what}"));
            }
            self.report.pages += 1;
            if number % 1024 == 0 {
                (self.progress)(CheckProgress::Pages(u64::from(number), u64::from(total)));
                runtime::fiber::safe_point();
            }
        }
        (self.progress)(CheckProgress::Pages(u64::from(total), u64::from(total)));
        Ok(())
    }

    fn system(&mut self) -> Result<(), SqlError> {
        self.tree("system catalog", &system::tree())
    }

    /// Checks a tree's own rules. Damage is reported and does not end the check.
    fn tree(&mut self, name: &str, tree: &Tree) -> Result<(), SqlError> {
        (self.progress)(CheckProgress::Object(name.to_owned()));
        let checked = trees::check(self.folder(), *tree).map_err(|error| from_storage(&error))?;
        self.report.trees += 1;
        self.reached += checked.pages;
        for (page, what) in checked.problems {
            self.fault(format!("{name}, page {page}: {what}"));
        }
        Ok(())
    }

    fn database(&mut self, catalog: &Catalog) -> Result<(), SqlError> {
        let mut tables: Vec<_> = catalog.tables().collect();
        tables.sort_by_key(|table| table.oid);
        for table in tables {
            let name = format!("{}.{}", catalog.database.name, table.name);
            let before = self.report.faults.len();
            self.tree(&format!("table {name}"), &table_tree(table))?;
            if table.out_of_line != TreeAddress::NONE {
                self.tree(&format!("values of {name}"), &tree(table.out_of_line))?;
            }
            for index in &table.indexes {
                self.tree(&format!("index {}.{}", catalog.database.name, index.name), &tree(index.tree))?;
            }
            if self.report.faults.len() == before
                && let Err(error) = self.agreement(&catalog.database.name, table)
            {
                self.fault(format!("table {name}: {error}"));
            }
        }
        Ok(())
    }

    /// Whether a table's indexes hold what its rows call for, as a snapshot of now sees them.
    fn agreement(&mut self, database: &str, table: &Table) -> Result<(), SqlError> {
        let shared = self.shared;
        let (rows, expected, found, values) = shared.internal(|txn| {
            let mut found = Vec::with_capacity(table.indexes.len());
            for index in &table.indexes {
                found.push(entries_of_index(txn, index)?);
            }
            let (rows, expected) = entries_of_rows(txn, table)?;
            Ok((rows, expected, found, values::check(txn, table)?))
        })?;
        self.report.rows += rows;
        self.report.chunks += values.chunks;
        for fault in values.faults {
            self.fault(format!("table {database}.{}: {fault}", table.name));
        }
        for ((index, expected), found) in table.indexes.iter().zip(expected).zip(found) {
            self.report.entries += found.count;
            if expected != found {
                self.fault(format!(
                    "index {database}.{}: {} entries, its table calls for {}{}",
                    index.name,
                    found.count,
                    expected.count,
                    if expected.count == found.count { ", and they differ" } else { "" }
                ));
            }
        }
        Ok(())
    }

    /// Checks that every page in use belongs to a tree, to the space map, or is the first page.
    fn ownership(&mut self) -> Result<(), SqlError> {
        let (total, free) = self.folder().pages();
        let used = u64::from(total - free);
        let owned = self.reached + folder::map_pages(total) + 1; // the first page
        if used != owned && self.report.faults.is_empty() {
            self.fault(format!("{used} pages are in use, but trees and maps own {owned}"));
        }
        Ok(())
    }
}

fn entries_of_index(txn: &TxnSession, index: &Index) -> Result<EntrySum, SqlError> {
    let mut sum = EntrySum::default();
    let mut scan = txn.scan(&tree(index.tree), ALL, Direction::Forward);
    while let Some((key, payload, _)) = scan.next(txn).map_err(from_txn)? {
        sum.add(key, payload);
        runtime::fiber::safe_point();
    }
    Ok(sum)
}

/// The rows of a table, and the entries they call for in each index.
fn entries_of_rows(txn: &TxnSession, table: &Table) -> Result<(u64, Vec<EntrySum>), SqlError> {
    let mut sums = vec![EntrySum::default(); table.indexes.len()];
    let (mut rows, mut key, mut payload) = (0, Vec::new(), Vec::new());
    let mut scan = txn.scan(&table_tree(table), ALL, Direction::Forward);
    while let Some((primary, bytes, _)) = scan.next(txn).map_err(from_txn)? {
        rows += 1;
        let view = RowView::new(bytes, table.shape());
        let bump = bumpalo::Bump::new();
        let value = |at: usize| {
            let value = view.get(at)?;
            if table.is_keyed(at) { fetch(txn, table, (at, value), &bump) } else { Ok(value) }
        };
        let row = (0..table.columns.len()).map(value).collect::<Result<Vec<_>, _>>()?;
        for (index, sum) in table.indexes.iter().zip(&mut sums) {
            index_entry(index, &row, primary, &mut key, &mut payload)?;
            sum.add(&key, &payload);
        }
        runtime::fiber::safe_point();
    }
    Ok((rows, sums))
}
