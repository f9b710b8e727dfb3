//! The session in which autoanalyze ([`crate::shared::autoanalyze`]) runs ANALYZE.

use std::sync::Arc;

use runtime::fiber;
use runtime::interrupt::Interrupt;

use crate::session::Session;
use crate::shared::Shared;
use crate::shared::definitions::Definitions;
use execution::client::{Client, Notice};
use query::plan::ColumnDesc;
use values::environment::Environment;
use values::error::SqlError;
use values::types::Datum;

/// A client that is not there.
struct Nobody;

impl Client for Nobody {
    fn columns(&mut self, _: &[ColumnDesc], _: &[i16]) {}
    fn row(&mut self, _: &[Datum<'_>], _: &[ColumnDesc], _: &dyn Environment) -> Result<(), SqlError> {
        Ok(())
    }
    fn complete(&mut self, _: &str) {}
    fn empty(&mut self) {}
    fn notice(&mut self, _: &Notice) {}
    fn copy_out_begin(&mut self, _: usize, _: bool) {}
    fn copy_out(&mut self, _: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_out_end(&mut self) {}
    fn copy_in_begin(&mut self, _: usize, _: bool) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_in(&mut self) -> Result<Option<&[u8]>, SqlError> {
        Ok(None)
    }
}

/// Analyses a table, by its quoted name, in a session of its own. It fails at once if the table is
/// locked.
pub(super) fn analyze(
    shared: &Arc<Shared>,
    definitions: &Arc<Definitions>,
    name: &str,
) -> Result<(), SqlError> {
    let interrupt = Interrupt::new();
    let mut session = Session::new(shared, Arc::clone(definitions), "postgres", &interrupt)?;
    fiber::obey(Some(Arc::clone(&interrupt)));
    let settings = "SET application_name = 'autoanalyze'; SET lock_timeout = '1ms'";
    let done = session
        .simple_query(settings, &mut Nobody)
        .and_then(|()| session.simple_query(&format!("ANALYZE {name}"), &mut Nobody));
    fiber::obey(None);
    done
}
