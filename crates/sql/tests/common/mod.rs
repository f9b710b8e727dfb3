//! A folder, a database and short helpers for tests.
#![allow(dead_code)] // each test file uses a part of it

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sql::SqlError;
use sql::database::{Database, Options};
use sql::embedded::{Answer, EmbeddedSession};

/// A wait longer than this counts as a hang.
pub const LONG: Duration = Duration::from_secs(60);

/// A folder that is removed when its test ends.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("allcore-sql-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn open(&self) -> Database {
        self.open_with(Options::default())
    }

    pub fn open_with(&self, options: Options) -> Database {
        let options = Options { cores: Some(2), pin: false, memory: Some(32 << 20), ..options };
        Database::open(&self.0, options).expect("the folder opens")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs statements that must succeed.
#[track_caller]
pub fn run(session: &mut EmbeddedSession, sql: &str) -> Answer {
    match session.run(sql) {
        Ok(answer) => answer,
        Err(error) => panic!("{sql}: {error:?} {:?}", *error),
    }
}

/// The number of pages in use.
pub fn used(database: &Database) -> u32 {
    let (pages, free) = database.folder().pages();
    pages - free
}

/// Waits until at most this many pages are in use.
#[track_caller]
pub fn until_used(database: &Database, at_most: u32) {
    let start = Instant::now();
    while used(database) > at_most {
        assert!(start.elapsed() < LONG, "{} pages stay in use, not {at_most}", used(database));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs `sql` in a session of its own on core 1. It must come to wait for a lock.
#[track_caller]
pub fn waits(database: &Database, sql: &str) -> JoinHandle<Result<Answer, SqlError>> {
    let mut other = database.session("postgres", 1).expect("a session");
    let text = sql.to_owned();
    let waiter = std::thread::spawn(move || other.run(&text));
    if !comes_to_wait(database, &|| waiter.is_finished()) {
        panic!("{sql} does not wait: {:?}", waiter.join().map(|done| done.map(|answer| answer.texts)));
    }
    waiter
}

/// Waits until a session waits for a lock (true), or until `finished` holds (false).
#[track_caller]
fn comes_to_wait(database: &Database, finished: &dyn Fn() -> bool) -> bool {
    let start = Instant::now();
    while database.locks().iter().all(|lock| lock.granted) {
        if finished() {
            return false;
        }
        assert!(start.elapsed() < LONG, "it neither ends nor waits");
        std::thread::yield_now();
    }
    true
}

/// Runs `waits`, which must come to wait for a lock that `first` holds. Then `first` commits.
pub fn behind<R: Send>(
    database: &Database,
    first: &mut EmbeddedSession,
    waits: impl FnOnce() -> R + Send,
) -> R {
    std::thread::scope(|scope| {
        let waiting = scope.spawn(waits);
        assert!(comes_to_wait(database, &|| waiting.is_finished()), "it does not wait");
        run(first, "COMMIT");
        waiting.join().expect("no panic")
    })
}

/// The SQLSTATE with which a session of [`waits`] ended.
#[track_caller]
pub fn ended(waiter: JoinHandle<Result<Answer, SqlError>>) -> String {
    let done = waiter.join().expect("a session ends");
    done.err().map_or_else(|| "00000".to_owned(), |error| error.code.as_str().to_owned())
}

/// Closes the folder and checks it.
#[track_caller]
pub fn close_sound(folder: &Folder, database: Database) {
    database.shutdown().expect("closes");
    drop(database);
    let database = folder.open();
    let report = database.check(&mut |_| ()).expect("a check ends");
    assert_eq!(report.faults, Vec::<String>::new());
    database.shutdown().expect("closes");
}

/// Runs statements that must fail with this SQLSTATE.
#[track_caller]
pub fn fails(session: &mut EmbeddedSession, sql: &str, code: &str) -> SqlError {
    match session.run(sql) {
        Ok(answer) => panic!("{sql} gave {:?} {:?}", answer.tags, answer.texts),
        Err(error) => {
            assert_eq!(error.code.as_str(), code, "{sql}: {error:?}");
            error
        }
    }
}

/// The rows as lines, columns between bars, NULL as "-".
pub fn lines(answer: &Answer) -> Vec<String> {
    let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    answer.texts.iter().map(|row| row.iter().map(show).collect::<Vec<_>>().join("|")).collect()
}

/// Runs a query and returns its rows as lines.
#[track_caller]
pub fn rows(session: &mut EmbeddedSession, sql: &str) -> Vec<String> {
    lines(&run(session, sql))
}
