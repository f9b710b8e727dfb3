//! Cursors: DECLARE, FETCH and MOVE.
//!
//! FETCH makes the rows of a query that only reads ([`super::row_stream`]). DECLARE computes and
//! keeps all rows of any other query, and of a cursor WITH HOLD. What must hold: a cursor stands
//! before the first row, on a row, or behind the last one. A cursor without SCROLL forgets the rows
//! it has passed.

use execution::RunningSession as _;
use std::sync::Arc;

use super::Session;
use super::command::RowSink;
use super::plans::Planned;
use super::portal::Portal;
use super::rows::KeptRows;
use execution::client::Client;
use execution::from_txn;
use query::plan::{DeclareCursor, Way};
use values::error::{SqlError, SqlState};
use values::memory;
use values::types::Datum;

impl Session {
    /// DECLARE CURSOR.
    pub(super) fn declare(
        &mut self,
        declare: &DeclareCursor,
        values: &[Datum<'_>],
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let DeclareCursor { name, text, query, hold, scroll } = declare;
        if !hold && !self.block.outlasts_statement() {
            self.require_block("DECLARE CURSOR")?;
        }
        if self.environment.portals.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(SqlError::new(SqlState::DUPLICATE_CURSOR, message));
        }
        memory::ask_to_keep()?;
        let memory = memory::for_kept(self.environment.table.work_mem);
        let mut kept = if *scroll { KeptRows::scrollable(memory) } else { KeptRows::new(memory) };
        match if *hold { None } else { self.begin_stream(query, values)? } {
            Some(live) => kept = kept.with_stream(live),
            None => {
                let folder = self.shared.engine.folder().clone();
                let mut keep = |row: &[Datum<'_>]| kept.push(&folder, row);
                self.run_query(query, values, u64::MAX, None, &mut RowSink { row: &mut keep, client })?;
            }
        }
        let compiled =
            query::compile::Compiled { statement: Arc::clone(query), declared: 0, uses: Vec::new() };
        let path = self.environment.table.path_key;
        let text = super::long::shared(text)?;
        let planned = Planned::new((text, &[]), path, None, Some(compiled), 0);
        let mut portal = Portal::default();
        portal.open(Arc::new(planned), &[], &[], &[]);
        portal.kept = Some(kept);
        // It runs once.
        portal.done = true;
        portal.held = *hold;
        portal.scrollable = *scroll;
        portal.created = self.environment.statement_time;
        portal.number = self.block.number_portal();
        self.environment.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    /// FETCH and, with `skip`, MOVE.
    pub(super) fn fetch(
        &mut self,
        name: &str,
        way: Way,
        skip: bool,
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        // A portal of the extended protocol may be one that was not executed yet.
        let place = self.environment.portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
        if place.is_running() {
            return Err(super::not_runnable(name));
        }
        let mut portal = std::mem::take(place);
        let gives = portal.planned.as_ref().is_some_and(|planned| self.shown_columns(planned).is_some());
        let filled = match portal.failed || portal.done && !gives {
            true => Err(super::not_runnable(name)),
            false => self.fill_portal(&mut portal, client),
        };
        let done = filled.and_then(|()| self.fetch_from(&mut portal, way, skip, client));
        self.environment.portals.insert(name.to_owned(), portal);
        done
    }

    /// CLOSE.
    ///
    /// # Errors
    /// 34000 for a cursor that is not there, 24000 for the portal that runs the statement.
    pub(super) fn close_cursor(&mut self, name: &str) -> Result<(), SqlError> {
        let portal = self.environment.portals.get(name).ok_or_else(|| no_cursor(name))?;
        if portal.is_running() {
            let message = format!("cannot drop active portal \"{name}\"");
            return Err(SqlError::new(SqlState::INVALID_CURSOR_STATE, message));
        }
        self.environment.portals.remove(name);
        Ok(())
    }

    /// [`Session::fetch`] from a portal whose rows are there.
    fn fetch_from(
        &self,
        portal: &mut Portal,
        way: Way,
        skip: bool,
        client: &mut dyn Client,
    ) -> Result<(), SqlError> {
        let columns = portal.planned.as_ref().and_then(super::columns_of).unwrap_or_else(|| [].into());
        if !skip {
            client.columns(&columns, &[]);
        }
        self.environment.before_showing()?;
        let gone = match &mut portal.kept {
            Some(kept) if skip => go(kept, way, None),
            Some(kept) => {
                let mut show = |row: &[Datum<'_>]| client.row(row, &columns, &self.environment);
                go(kept, way, Some(&mut show))
            }
            // It stands behind the last row.
            None => go(&mut KeptRows::new(memory::for_kept(self.environment.table.work_mem)), way, None)
                .map(|_| 0),
        };
        // A cursor that failed stays so, even when the transaction goes back to a savepoint.
        portal.failed |= gone.is_err();
        let sent_rows = gone?;
        client.complete(&format!("{} {sent_rows}", if skip { "MOVE" } else { "FETCH" }));
        Ok(())
    }
}

/// 34000.
pub(super) fn no_cursor(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CURSOR_NAME, format!("cursor \"{name}\" does not exist"))
}

/// The receiver of the rows that are fetched.
type Show<'s> = &'s mut dyn FnMut(&[Datum<'_>]) -> Result<(), SqlError>;

/// Moves a cursor. Shows the rows that FETCH gives and returns their number, or the number of rows
/// that MOVE passes.
fn go(kept: &mut KeptRows, way: Way, show: Option<Show<'_>>) -> Result<u64, SqlError> {
    match way {
        // Gives the row that the cursor stands on once more.
        Way::Forward(Some(0)) | Way::Backward(Some(0)) | Way::Relative(0) => match show {
            None => Ok(kept.on_row().into()),
            show if kept.on_row() => {
                run(kept, false, Some(1), None)?;
                run(kept, true, Some(1), show)
            }
            _ => Ok(0),
        },
        // MOVE BACKWARD ALL is a rewind, which a cursor that has not moved allows.
        Way::Backward(None) if show.is_none() => {
            let passed = kept.place().saturating_sub(1);
            kept.rewind()?;
            Ok(passed)
        }
        Way::Forward(count) => run(kept, true, count, show),
        Way::Backward(count) => run(kept, false, count, show),
        Way::Relative(count) => {
            run(kept, count > 0, Some(count.unsigned_abs() - 1), None)?;
            run(kept, count > 0, Some(1), show)
        }
        Way::Absolute(0) => {
            kept.rewind()?;
            Ok(0)
        }
        Way::Absolute(count @ 1..) => {
            let (target, place) = (count.unsigned_abs(), kept.place());
            // Goes from the start if that is nearer, otherwise from here.
            if target - 1 <= kept.passed() / 2 {
                kept.rewind()?;
                run(kept, true, Some(target - 1), None)?;
            } else if target <= place {
                run(kept, false, Some(place - target + 1), None)?;
            } else {
                run(kept, true, Some(target - place - 1), None)?;
            }
            run(kept, true, Some(1), show)
        }
        Way::Absolute(count) => {
            run(kept, true, None, None)?;
            if count < -1 {
                run(kept, false, Some(count.unsigned_abs() - 1), None)?;
            }
            run(kept, false, Some(1), show)
        }
    }
}

/// Passes at most `count` rows, or all. Returns their number.
fn run(
    kept: &mut KeptRows,
    forward: bool,
    count: Option<u64>,
    mut show: Option<Show<'_>>,
) -> Result<u64, SqlError> {
    if !forward {
        kept.require_scroll()?;
    }
    let mut sent_rows = 0;
    while count.is_none_or(|count| sent_rows < count) {
        let row = |row: &[Datum<'_>]| show.as_mut().map_or(Ok(()), |show| show(row));
        let moved = if forward { kept.pop(row)? } else { kept.back(row)? };
        if moved.is_none() {
            break;
        }
        sent_rows += 1;
        runtime::fiber::safe_point();
        runtime::interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
    }
    Ok(sent_rows)
}
