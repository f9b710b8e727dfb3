//! Allcore inside a Rust program, without a socket and with rows as owned values.
//!
//! What must hold: a session lives on one core of the runtime. Each call runs there on a fiber and
//! blocks its caller until it is done, so no worker may call.

use std::path::Path;
use std::sync::Arc;

use runtime::fiber;
use runtime::interrupt::{Interrupt, Reason};

use crate::database::{Database, OpenError};
use crate::session::Session;
use execution::client::{Client, Notice};
use query::plan::ColumnDesc;
use values::environment::Environment;
use values::error::SqlError;
use values::text;
use values::types::{Datum, Type, Value};

/// The results of a statement.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The columns of the last statement that returned rows.
    pub columns: Vec<ColumnDesc>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
    /// The completion tags, one for each statement.
    pub tags: Vec<String>,
    /// Notices and warnings.
    pub notices: Vec<Notice>,
    /// The rows as text; None is NULL.
    pub texts: Vec<Vec<Option<String>>>,
    /// The bytes that COPY TO wrote.
    pub copied: Vec<u8>,
    /// The input of a COPY FROM in this call.
    input: Option<Vec<u8>>,
    /// Kept while the reader borrows it.
    piece: Vec<u8>,
}

impl Client for Answer {
    fn columns(&mut self, columns: &[ColumnDesc], _: &[i16]) {
        self.columns = columns.to_vec();
        self.rows.clear();
        self.texts.clear();
    }
    fn row(
        &mut self,
        row: &[Datum<'_>],
        columns: &[ColumnDesc],
        session: &dyn Environment,
    ) -> Result<(), SqlError> {
        if self.columns.is_empty() {
            self.columns = columns.to_vec();
        }
        self.rows.push(row.iter().map(Datum::to_value).collect::<Result<_, _>>()?);
        let shown = row.iter().zip(columns).map(|(value, column)| {
            let shown =
                (!value.is_null()).then(|| text::to_bytes(*value, column.type_, session)).transpose()?;
            Ok(shown.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        });
        self.texts.push(shown.collect::<Result<_, SqlError>>()?);
        Ok(())
    }
    fn complete(&mut self, tag: &str) {
        self.tags.push(tag.to_owned());
    }
    fn empty(&mut self) {}
    fn notice(&mut self, notice: &Notice) {
        self.notices.push(notice.clone());
    }
    fn copy_out_begin(&mut self, _: usize, _: bool) {}
    fn copy_out(&mut self, data: &[u8]) -> Result<(), SqlError> {
        self.copied.extend_from_slice(data);
        Ok(())
    }
    fn copy_out_end(&mut self) {}
    fn copy_in_begin(&mut self, _: usize, _: bool) -> Result<(), SqlError> {
        match self.input {
            Some(_) => Ok(()),
            None => Err(SqlError::unsupported("COPY FROM STDIN without data")),
        }
    }
    fn copy_in(&mut self) -> Result<Option<&[u8]>, SqlError> {
        match self.input.take() {
            Some(input) => {
                self.piece = input;
                Ok(Some(&self.piece))
            }
            None => Ok(None),
        }
    }
}

impl Database {
    /// Opens a data folder with the usual options.
    pub fn open_folder(path: impl AsRef<Path>) -> Result<Database, OpenError> {
        Database::open(path.as_ref(), crate::database::Options::default())
    }

    /// A session for a thread that is no worker, on the given core.
    pub fn session(&self, database: &str, core: usize) -> Result<EmbeddedSession, SqlError> {
        let interrupt = Interrupt::new();
        let runtime = Arc::clone(self.runtime());
        let session = runtime.call(core, || self.connect(database, "postgres", &interrupt))?;
        Ok(EmbeddedSession { database: self.clone(), core, session: Some(session), interrupt })
    }
}

/// A session used from outside the runtime.
pub struct EmbeddedSession {
    database: Database,
    core: usize,
    /// There until it is dropped.
    session: Option<Session>,
    interrupt: Arc<Interrupt>,
}

impl EmbeddedSession {
    /// Runs any number of statements; in one transaction unless they say otherwise.
    pub fn run(&mut self, sql: &str) -> Result<Answer, SqlError> {
        self.call(None, |session, answer| session.simple_query(sql, answer))
    }

    /// Runs a COPY FROM STDIN with its data.
    pub fn copy_in(&mut self, sql: &str, data: &[u8]) -> Result<Answer, SqlError> {
        self.call(Some(data.to_vec()), |session, answer| session.simple_query(sql, answer))
    }

    /// Runs one statement with parameters. Its plan is kept on the core for the next time.
    pub fn execute(&mut self, sql: &str, params: &[Value]) -> Result<Answer, SqlError> {
        self.call(None, |session, answer| {
            let done = bound(session, sql, params, answer);
            match done {
                Ok(()) => session.sync(),
                Err(error) => {
                    session.fail();
                    session.sync()?;
                    Err(error)
                }
            }
        })
    }

    /// `I`, `T` or `E`, as the protocol tells a session's state.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.session.as_ref().map_or(b'I', Session::status)
    }

    /// Gives a handle that cancels what the session runs.
    pub fn canceller(&self) -> impl Fn() + Send + Sync + 'static {
        let interrupt = Arc::clone(&self.interrupt);
        move || interrupt.raise(Reason::Cancel)
    }

    fn call(
        &mut self,
        input: Option<Vec<u8>>,
        body: impl FnOnce(&mut Session, &mut Answer) -> Result<(), SqlError> + Send,
    ) -> Result<Answer, SqlError> {
        let Some(session) = &mut self.session else {
            return Err(SqlError::internal("a session that is gone"));
        };
        let interrupt = &self.interrupt;
        self.database.runtime().call(self.core, move || {
            fiber::obey(Some(Arc::clone(interrupt)));
            let mut answer = Answer { input, ..Answer::default() };
            let done = body(session, &mut answer);
            fiber::obey(None);
            done.map(|()| answer)
        })
    }
}

impl Drop for EmbeddedSession {
    fn drop(&mut self) {
        let session = self.session.take();
        if runtime::try_core().is_none() {
            // Waits, so that the session is gone when the drop returns.
            self.database.runtime().try_call(self.core, move || drop(session));
        }
        // On a worker, which may not wait in a drop, the session is dropped in place and ends by
        // itself. After a shutdown there is nothing to wait for.
    }
}

/// The extended protocol's steps for one statement.
fn bound(session: &mut Session, sql: &str, params: &[Value], answer: &mut Answer) -> Result<(), SqlError> {
    session.parse("", sql, &[])?;
    let (types, _) = session.describe_statement("")?;
    let mut texts = Vec::with_capacity(params.len());
    for (at, value) in params.iter().enumerate() {
        let own = Type::new(types.get(at).copied().unwrap_or(0));
        texts.push(session.value_text(value, own)?);
    }
    let parameters: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
    session.bind("", "", &parameters, &[], &[])?;
    session.execute("", 0, answer)?;
    Ok(())
}
