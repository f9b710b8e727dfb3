//! Commands that give rows (SHOW, EXPLAIN, FETCH, EXECUTE) under the row limit of a portal.
//!
//! With a row limit, the command's first Execute makes all rows and keeps them with the portal,
//! which gives them from there. Without one, the client gets the rows as they are made.
//!
//! What must hold:
//!
//! 1. A command runs once, however many Executes take its rows.
//! 2. A command whose rows are kept sends no tag. The Execute that finds no further row sends it,
//!    with its own number of rows.
//! 3. Notices reach the client at once in both cases.
//! 4. The columns of the rows are those that the first row came with. EXECUTE and FETCH give the
//!    columns of another statement than their own.

use std::sync::Arc;

use txn::Folder;

use super::Session;
use super::rows::KeptRows;
use execution::client::{Client, Notice};
use query::plan::{ColumnDesc, Statement};
use values::environment::Environment;
use values::error::SqlError;
use values::memory;
use values::types::Datum;

/// The columns and tag of a command, for later runs of its portal.
pub(super) struct CommandRows {
    /// The columns of its rows.
    pub columns: Arc<[ColumnDesc]>,
    /// Its tag, with the number of the rows of its first run.
    tag: String,
}

impl CommandRows {
    /// The tag of a run that gave so many rows.
    pub fn tag(&self, rows: u64) -> String {
        match self.tag.rsplit_once(' ') {
            Some((word, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{word} {rows}")
            }
            _ => self.tag.clone(),
        }
    }
}

/// A client that keeps a command's rows, or passes them on, and keeps its tag.
struct Keeper<'c> {
    client: &'c mut dyn Client,
    folder: Folder,
    kept: Option<KeptRows>,
    columns: Option<Arc<[ColumnDesc]>>,
    tag: String,
}

impl Session {
    /// Runs a command that gives rows. With `keep` it keeps the rows, and sends the client neither
    /// rows nor the completion.
    pub(super) fn run_for_rows(
        &mut self,
        statement: &Statement,
        values: &[Datum<'_>],
        keep: bool,
        client: &mut dyn Client,
    ) -> Result<(CommandRows, Option<KeptRows>), SqlError> {
        let folder = self.shared.engine.folder().clone();
        let kept = keep.then(|| KeptRows::new(memory::for_kept(self.environment.table.work_mem)));
        let mut keeper = Keeper { client, folder, kept, columns: None, tag: String::new() };
        self.run_command(statement, values, &mut keeper)?;
        let Keeper { kept, columns, tag, .. } = keeper;
        let columns = columns.unwrap_or_else(|| Arc::clone(&statement.columns));
        Ok((CommandRows { columns, tag }, kept))
    }
}

impl Client for Keeper<'_> {
    fn columns(&mut self, columns: &[ColumnDesc], formats: &[i16]) {
        self.client.columns(columns, formats);
    }

    fn row(
        &mut self,
        row: &[Datum<'_>],
        columns: &[ColumnDesc],
        session: &dyn Environment,
    ) -> Result<(), SqlError> {
        if self.columns.is_none() {
            self.columns = Some(columns.into());
        }
        match &mut self.kept {
            Some(kept) => kept.push(&self.folder, row),
            None => self.client.row(row, columns, session),
        }
    }

    fn complete(&mut self, tag: &str) {
        tag.clone_into(&mut self.tag);
        if self.kept.is_none() {
            self.client.complete(tag);
        }
    }

    fn empty(&mut self) {
        self.client.empty();
    }

    fn notice(&mut self, notice: &Notice) {
        self.client.notice(notice);
    }

    fn copy_out_begin(&mut self, columns: usize, binary: bool) {
        self.client.copy_out_begin(columns, binary);
    }

    fn copy_out(&mut self, data: &[u8]) -> Result<(), SqlError> {
        self.client.copy_out(data)
    }

    fn copy_out_end(&mut self) {
        self.client.copy_out_end();
    }

    fn copy_in_begin(&mut self, columns: usize, binary: bool) -> Result<(), SqlError> {
        self.client.copy_in_begin(columns, binary)
    }

    fn copy_in(&mut self) -> Result<Option<&[u8]>, SqlError> {
        self.client.copy_in()
    }
}
