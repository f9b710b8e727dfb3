//! A prepared point select allocates nothing in bind, execute and sync.

use crate::common::{Folder, run};
use execution::client::{Client, Notice};
use query::plan::ColumnDesc;
use runtime::interrupt::Interrupt;
use sql::SqlError;
use sql::session::Session;
use values::environment::Environment;
use values::types::Datum;

/// Counts rows.
struct Sink(u64);

impl Client for Sink {
    fn columns(&mut self, _: &[ColumnDesc], _: &[i16]) {}
    fn row(&mut self, _: &[Datum<'_>], _: &[ColumnDesc], _: &dyn Environment) -> Result<(), SqlError> {
        self.0 += 1;
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

/// Bind, Execute, Sync.
fn bound(session: &mut Session, name: &str, key: i32, sink: &mut Sink) -> Result<(), SqlError> {
    session.bind("", name, &[Some(&key.to_be_bytes())], &[1], &[])?;
    session.execute("", 0, sink)?;
    session.sync()
}

#[test]
fn a_point_select_allocates_nothing() {
    let folder = Folder::new("hot");
    let database = folder.open();
    let mut embedded = database.session("postgres", 0).expect("a session");
    run(&mut embedded, "CREATE TABLE t (a int PRIMARY KEY, b int, c char(84))");
    run(&mut embedded, "INSERT INTO t SELECT g, g, '' FROM generate_series(1, 1000) g");
    drop(embedded);
    let handle = database.clone();
    let (allocations, rows) = database.runtime().call(0, move || {
        let mut session = handle.connect("postgres", "postgres", &Interrupt::new()).expect("a session");
        let mut sink = Sink(0);
        session.parse("select", "SELECT b, c FROM t WHERE a = $1", &[]).expect("parses");
        for key in 1..=100 {
            bound(&mut session, "select", key, &mut sink).expect("runs");
        }
        let counted = allocation_counter::measure(|| {
            for key in 1..=1000 {
                bound(&mut session, "select", key, &mut sink).expect("runs");
            }
        });
        (counted.count_total, sink.0)
    });
    assert_eq!((allocations, rows), (0, 1100));
    database.shutdown().expect("closes");
}
