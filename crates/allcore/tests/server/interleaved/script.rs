//! Plays scripts: statements of several sessions in a given order, with the outcome that PostgreSQL
//! 18 gives.
//!
//! A script is a text of lines:
//!
//! ```text
//! a: begin
//! a: insert into child values (1)
//! b: delete from parent where id = 1 => waits
//! a: commit
//! b => error 23503
//! c: select id, n from parent => (1, one) (2, null)
//! c: delete from parent => count 2
//! c: select 1 where false => no rows
//! ```
//!
//! - `name: statement` runs a statement in the session of that name, which begins at its first
//!   line. It must return without an error before the next line is read.
//! - `=> outcome` says how it ends: `error SQLSTATE`, the rows, `no rows`, or `count N` for the
//!   rows changed.
//! - `=> waits` says that the statement is blocked by a lock, as `pg_stat_activity` shows it. The
//!   next lines go on meanwhile.
//! - `name => outcome` says that the blocked statement ends now, and how.
//! - `name: extended statement` runs it by the extended protocol; its outcome is the number of
//!   rows.
//! - `=> outcome | PostgreSQL: outcome` is a difference that docs/sql.md lists: Allcore's outcome,
//!   then PostgreSQL's.
//! - A line that begins with a blank continues the line before; `#` begins a comment line.
//!
//! No line depends on the time passed: each waits until its condition holds, up to [`LIMIT`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls, SimpleQueryMessage};

use crate::common::Server;

/// A condition that does not hold after so long fails the script.
const LIMIT: Duration = Duration::from_secs(120);
/// Pause between two looks at `pg_stat_activity`.
const PAUSE: Duration = Duration::from_millis(5);

/// Where scripts are played: an Allcore of the test's own, or the server that
/// `ALLCORE_INTERLEAVED_ON` names by a connection string. The latter is how the outcomes were
/// compared with PostgreSQL 18.
pub struct Stage {
    server: Option<Server>,
    settings: String,
}

impl Stage {
    pub fn open() -> Stage {
        if let Ok(settings) = std::env::var("ALLCORE_INTERLEAVED_ON") {
            return Stage { server: None, settings };
        }
        let server = Server::start(&[]);
        let settings =
            format!("host=127.0.0.1 port={} user=postgres dbname=postgres connect_timeout=60", server.port);
        Stage { server: Some(server), settings }
    }

    /// Whether the scripts are played on an Allcore of the test's own.
    pub fn is_allcore(&self) -> bool {
        self.server.is_some()
    }

    /// The outcome that this server gives, out of those in a script's line.
    fn expected<'l>(&self, outcome: &'l str) -> &'l str {
        match outcome.split_once(" | PostgreSQL: ") {
            Some((allcores, _)) if self.is_allcore() => allcores,
            Some((_, postgresqls)) => postgresqls,
            None => outcome,
        }
    }

    pub fn connect(&self) -> Client {
        let log = || self.server.as_ref().map(Server::log).unwrap_or_default();
        Client::connect(&self.settings, NoTls).unwrap_or_else(|error| panic!("{error}\n{}", log()))
    }

    /// Plays scripts, each in a schema of its own. All are played; those that fail are printed.
    pub fn play(&self, scripts: &[(&str, &str)]) {
        let failed: Vec<String> = scripts
            .iter()
            .filter_map(|(name, text)| Play::begin(self).run(text).err().map(|why| format!("{name}: {why}")))
            .collect();
        assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    }
}

/// A session on a thread of its own, which runs one statement at a time.
struct Player {
    pid: i32,
    statements: Sender<String>,
    outcomes: Receiver<String>,
    /// Whether a statement is under way.
    busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Player {
    fn begin(mut client: Client) -> Player {
        let pid = crate::common::pid(&mut client);
        let (statements, to_do) = channel::<String>();
        let (done, outcomes) = channel();
        let thread = std::thread::spawn(move || {
            for statement in to_do {
                let outcome = match statement.strip_prefix("extended ") {
                    Some(statement) => number(client.execute(statement, &[])),
                    None => outcome(client.simple_query(&statement)),
                };
                if done.send(outcome).is_err() {
                    return;
                }
            }
        });
        Player { pid, statements, outcomes, busy: false, thread: Some(thread) }
    }
}

/// An outcome as scripts write it.
fn outcome(result: Result<Vec<SimpleQueryMessage>, postgres::Error>) -> String {
    let messages = match result {
        Ok(messages) => messages,
        Err(error) => return refusal(&error),
    };
    let (mut rows, mut described, mut count) = (Vec::new(), false, 0);
    for message in messages {
        match message {
            SimpleQueryMessage::RowDescription(_) => described = true,
            SimpleQueryMessage::Row(row) => {
                let values: Vec<&str> = (0..row.len()).map(|at| row.get(at).unwrap_or("null")).collect();
                rows.push(format!("({})", values.join(", ")));
            }
            SimpleQueryMessage::CommandComplete(number) => count = number,
            _ => {}
        }
    }
    match described {
        true if rows.is_empty() => "no rows".to_owned(),
        true => rows.join(" "),
        false => format!("count {count}"),
    }
}

/// The same of a statement of the extended protocol: a number of rows.
fn number(result: Result<u64, postgres::Error>) -> String {
    result.map_or_else(|error| refusal(&error), |rows| format!("count {rows}"))
}

fn refusal(error: &postgres::Error) -> String {
    error.code().map_or_else(|| error.to_string(), |code| format!("error {}", code.code()))
}

/// A script being played.
struct Play<'s> {
    stage: &'s Stage,
    schema: String,
    observer: Client,
    players: BTreeMap<String, Player>,
}

impl Play<'_> {
    fn begin(stage: &Stage) -> Play<'_> {
        static PLAYED: AtomicU32 = AtomicU32::new(0);
        let number = PLAYED.fetch_add(1, Ordering::Relaxed);
        let schema = format!("interleaved_{}_{number}", std::process::id());
        let mut observer = stage.connect();
        observer.batch_execute(&format!("create schema {schema}")).unwrap();
        Play { stage, schema, observer, players: BTreeMap::new() }
    }

    fn run(mut self, text: &str) -> Result<(), String> {
        for line in lines(text) {
            let (step, expected) = match line.rsplit_once("=>") {
                Some((step, expected)) => (step.trim(), Some(self.stage.expected(expected.trim()))),
                None => (line.as_str(), None),
            };
            match step.split_once(':') {
                Some((name, statement)) => self.statement(name, statement.trim(), expected),
                None => self.goes_on(step, expected.unwrap_or_default()),
            }
            .map_err(|why| format!("{line}\n    {why}"))?;
        }
        match self.players.iter().find(|(_, player)| player.busy) {
            Some((name, _)) => Err(format!("{name} waits at the script's end")),
            None => self.end(),
        }
    }

    /// Ends the sessions and leaves nothing behind on a server that is not the test's own.
    fn end(mut self) -> Result<(), String> {
        for (_, mut player) in std::mem::take(&mut self.players) {
            drop(player.statements);
            if player.thread.take().is_some_and(|thread| thread.join().is_err()) {
                return Err("a session's thread panicked".to_owned());
            }
        }
        if self.stage.server.is_none() {
            self.observer.batch_execute(&format!("drop schema {} cascade", self.schema)).unwrap();
        }
        Ok(())
    }

    fn statement(&mut self, name: &str, statement: &str, expected: Option<&str>) -> Result<(), String> {
        if !self.players.contains_key(name) {
            let mut client = self.stage.connect();
            client.batch_execute(&format!("set search_path to {}", self.schema)).unwrap();
            self.players.insert(name.to_owned(), Player::begin(client));
        }
        let player = self.players.get_mut(name).expect("inserted above");
        if player.busy {
            return Err(format!("{name} still waits"));
        }
        player.statements.send(statement.to_owned()).map_err(|error| error.to_string())?;
        player.busy = true;
        match expected {
            Some("waits") => self.blocked(name),
            expected => self.returns(name, expected),
        }
    }

    /// A statement that was blocked ends, or is blocked by something else now.
    fn goes_on(&mut self, name: &str, expected: &str) -> Result<(), String> {
        if !self.players.get(name).is_some_and(|player| player.busy) {
            return Err(format!("{name} runs no statement"));
        }
        match expected {
            "waits" => self.blocked(name),
            expected => self.returns(name, Some(expected)),
        }
    }

    fn returns(&mut self, name: &str, expected: Option<&str>) -> Result<(), String> {
        let player = self.players.get_mut(name).ok_or("no such session")?;
        let outcome = match player.outcomes.recv_timeout(LIMIT) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => return Err(format!("it does not return\n{}", self.blockers())),
            Err(RecvTimeoutError::Disconnected) => return Err("the session is gone".to_owned()),
        };
        player.busy = false;
        match expected {
            None if outcome.starts_with("count") || outcome.starts_with('(') || outcome == "no rows" => {
                Ok(())
            }
            Some(expected) if outcome == expected => Ok(()),
            _ => Err(format!("it gives {outcome}")),
        }
    }

    /// Waits until the session is blocked by a lock: at several looks, lest it is on its way from
    /// one lock to the next.
    fn blocked(&mut self, name: &str) -> Result<(), String> {
        let player = self.players.get_mut(name).ok_or("no such session")?;
        let deadline = Instant::now() + LIMIT;
        let look = "select wait_event_type = 'Lock' from pg_stat_activity where pid = $1";
        let mut looks = 0;
        while looks < 3 {
            if let Ok(outcome) = player.outcomes.try_recv() {
                player.busy = false;
                return Err(format!("it does not wait but gives {outcome}"));
            }
            if Instant::now() > deadline {
                return Err("it neither waits for a lock nor returns".to_owned());
            }
            let row = self.observer.query_one(look, &[&player.pid]).map_err(|error| error.to_string())?;
            match row.get::<_, Option<bool>>(0) {
                Some(true) => looks += 1,
                _ => looks = 0,
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Names the locked object in a message.
    fn blockers(&mut self) -> String {
        let query =
            "select pid::text, locktype, mode, granted::text from pg_locks where locktype <> 'virtualxid'";
        let rows = self.observer.query(query, &[]).unwrap_or_default();
        let line = |row: &postgres::Row| {
            let cells: Vec<Option<String>> = (0..row.len()).map(|at| row.get(at)).collect();
            cells.into_iter().flatten().collect::<Vec<_>>().join(" ")
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The scripts of a text in which `## name` begins each, with their names.
pub fn sections(text: &str) -> Vec<(&str, &str)> {
    text.split("## ").skip(1).filter_map(|section| section.split_once('\n')).collect()
}

/// The script's lines: continued ones as one, without comments.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match lines.last_mut() {
            Some(last) if line.starts_with(char::is_whitespace) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => lines.push(line.trim_end().to_owned()),
        }
    }
    lines
}
