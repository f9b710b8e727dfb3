//! One look at the server: its views as numbers and texts.
//!
//! All statements go in one message, so a look is one transaction and one round trip. A second
//! transaction before it takes the time of a round trip. [`OWN_TRANSACTIONS`] counts them.

use std::time::{Duration, Instant};

use crate::clean;
use crate::connect::{Connection, Rows};

/// Commits that one look adds to the server's count.
pub(crate) const OWN_TRANSACTIONS: u64 = 2;
/// Sessions of one look, at most. Those that run something come first.
const SESSIONS: usize = 500;

const COUNTS: &str = "
    select sum(xact_commit), sum(xact_rollback) from pg_stat_database;
    select worker, user_time, system_time from allcore_workers where core is not null order by core;
    select frames, in_use, pages, passes, reads, evictions, writes from allcore_buffers;
    select durable, writes, bytes, served, in_flight, sessions_in_flight from allcore_log;
    select class, site, kind, wait_total, hold_total, count, contended_wait from allcore_lock_profile;
    select coalesce(state, ''), wait_event_type, wait_event, count(*) from pg_stat_activity
     where pid <> pg_backend_pid() group by 1, 2, 3;";

/// The first of these opens the server's counters, which cost it a little from then on.
const COUNTERS: &str = "
    select cycles, instructions, cache_misses, refused from allcore_counters where core is not null order by core;";

/// The columns of a session, without its text. The times are those of what goes on.
const SESSION: &str = "pid, usename, datname, coalesce(state, ''), wait_event_type, wait_event,
    extract(epoch from clock_timestamp() - case state when 'active' then query_start end),
    extract(epoch from clock_timestamp() - xact_start)";

/// The parts of a look that the user has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    /// The session to look at more closely.
    pub(crate) open: Option<i32>,
    /// Whether hardware counters are read.
    pub(crate) counters: bool,
}

/// One look at the server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    /// When the server's answer came, on the clock of this program.
    pub(crate) at: Duration,
    /// The number of the connection.
    pub(crate) connection: u64,
    /// The time of an empty statement.
    pub(crate) round_trip: Duration,
    /// Transactions since the server started.
    pub(crate) commits: u64,
    pub(crate) rollbacks: u64,
    pub(crate) cores: Vec<Core>,
    /// Hardware counters, if they were asked for.
    pub(crate) counters: Option<Counters>,
    pub(crate) buffers: Option<Buffers>,
    pub(crate) log: Option<Log>,
    pub(crate) locks: Vec<Lock>,
    /// Numbers of sessions, but for that of this program.
    pub(crate) groups: Vec<Group>,
    /// Sessions, those that run something first.
    pub(crate) sessions: Vec<Session>,
    /// The session that the user has opened.
    pub(crate) open: Option<Details>,
}

#[derive(Debug, Clone)]
pub(crate) struct Core {
    pub(crate) name: String,
    /// Processor time in seconds in the program and in the kernel, where the system tells.
    pub(crate) times: Option<(f64, f64)>,
}

/// Hardware counters of the cores.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    /// By core, in the order of [`Sample::cores`].
    pub(crate) cores: Vec<Counts>,
    /// Why counts of a core are missing.
    pub(crate) refused: Option<String>,
}

/// Counts of a core's hardware; none where the kernel or the machine refuses one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Counts {
    pub(crate) cycles: Option<f64>,
    pub(crate) instructions: Option<f64>,
    pub(crate) cache_misses: Option<f64>,
}

#[derive(Debug, Clone)]
pub(crate) struct Buffers {
    pub(crate) frames: u64,
    pub(crate) in_use: u64,
    /// The kind of their memory's pages.
    pub(crate) pages: String,
    pub(crate) passes: u64,
    pub(crate) reads: u64,
    pub(crate) evictions: u64,
    pub(crate) writes: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) durable: u64,
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
    pub(crate) served: u64,
    pub(crate) in_flight: u64,
    pub(crate) sessions_in_flight: u64,
}

/// Counts of a place that takes a lock.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lock {
    /// Its class, place and kind.
    pub(crate) name: [String; 3],
    /// Times waited and held, in seconds.
    pub(crate) wait: f64,
    pub(crate) hold: f64,
    pub(crate) count: f64,
    pub(crate) contended: f64,
}

/// Sessions of one state and wait event.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) state: String,
    pub(crate) wait: Option<String>,
    pub(crate) sessions: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    pub(crate) pid: i32,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) state: String,
    pub(crate) wait: Option<String>,
    /// The ages of its statement and of its transaction, in seconds.
    pub(crate) statement: Option<f64>,
    pub(crate) transaction: Option<f64>,
    /// The beginning of its current or last statement, on one line.
    pub(crate) query: String,
}

/// A session that the user has opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Details {
    pub(crate) pid: i32,
    /// Names and values; none if the session has ended.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// The text of its statement, with its line breaks.
    pub(crate) query: String,
}

impl Sample {
    /// Looks at the server. [`Sample::at`] counts from `epoch`.
    pub(crate) fn read(connection: &mut Connection, epoch: Instant, wanted: Wanted) -> Result<Self, String> {
        // The first statement may have to connect. It is not timed then.
        let number = connection.number;
        let began = Instant::now();
        connection.run("select 1")?;
        let mut round_trip = began.elapsed();
        if connection.number != number {
            let began = Instant::now();
            connection.run("select 1")?;
            round_trip = began.elapsed();
        }
        let mut results = connection.run(&statements(wanted))?.into_iter();
        let mut next = || results.next().unwrap_or_default();
        let counts = next();
        let count = |at| counts.first().map_or(0, |row| whole(row, at));
        Ok(Self {
            at: epoch.elapsed(),
            connection: connection.number,
            round_trip,
            commits: count(0),
            rollbacks: count(1),
            cores: next().iter().map(|row| core(row)).collect(),
            buffers: next().first().map(|row| buffers(row)),
            log: next().first().map(|row| log(row)),
            locks: next().iter().map(|row| lock(row)).collect(),
            groups: next().iter().map(|row| group(row)).collect(),
            sessions: next().iter().map(|row| session(row)).collect(),
            counters: wanted.counters.then(|| counters(&next())),
            open: wanted.open.map(|pid| details(pid, &next())),
        })
    }
}

fn statements(wanted: Wanted) -> String {
    let mut text = format!(
        "{COUNTS}
        select {SESSION}, left(query, 400) from pg_stat_activity where pid <> pg_backend_pid()
         order by state = 'idle', state <> 'active', query_start limit {SESSIONS};"
    );
    if wanted.counters {
        text.push_str(COUNTERS);
    }
    if let Some(pid) = wanted.open {
        text.push_str(&format!(
            "select {SESSION}, query, application_name, backend_start, xact_start, query_start, state_change
               from pg_stat_activity where pid = {pid}"
        ));
    }
    text
}

type Row = [Option<String>];

fn value(row: &Row, at: usize) -> Option<&str> {
    row.get(at)?.as_deref()
}

fn whole(row: &Row, at: usize) -> u64 {
    value(row, at).and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn number(row: &Row, at: usize) -> Option<f64> {
    value(row, at)?.parse().ok().filter(|number: &f64| number.is_finite())
}

fn name(row: &Row, at: usize) -> String {
    value(row, at).map(clean::line).unwrap_or_default()
}

/// A wait event: its type and name from two columns.
fn wait(row: &Row, at: usize) -> Option<String> {
    value(row, at).map(|_| format!("{}/{}", name(row, at), name(row, at + 1)))
}

fn core(row: &Row) -> Core {
    let times = number(row, 1).zip(number(row, 2)).map(|(user, system)| (user / 1e3, system / 1e3));
    Core { name: name(row, 0), times }
}

fn counters(rows: &Rows) -> Counters {
    let counts = |row: &Vec<Option<String>>| Counts {
        cycles: number(row, 0),
        instructions: number(row, 1),
        cache_misses: number(row, 2),
    };
    let refused = rows.iter().find_map(|row| value(row, 3)).map(clean::line);
    Counters { cores: rows.iter().map(counts).collect(), refused }
}

fn buffers(row: &Row) -> Buffers {
    Buffers {
        frames: whole(row, 0),
        in_use: whole(row, 1),
        pages: name(row, 2),
        passes: whole(row, 3),
        reads: whole(row, 4),
        evictions: whole(row, 5),
        writes: whole(row, 6),
    }
}

fn log(row: &Row) -> Log {
    Log {
        durable: whole(row, 0),
        writes: whole(row, 1),
        bytes: whole(row, 2),
        served: whole(row, 3),
        in_flight: whole(row, 4),
        sessions_in_flight: whole(row, 5),
    }
}

fn lock(row: &Row) -> Lock {
    let micros = |at| number(row, at).unwrap_or(0.0) / 1e6;
    let count = |at| number(row, at).unwrap_or(0.0);
    Lock {
        name: [name(row, 0), name(row, 1), name(row, 2)],
        wait: micros(3),
        hold: micros(4),
        count: count(5),
        contended: count(6),
    }
}

fn group(row: &Row) -> Group {
    Group { state: name(row, 0), wait: wait(row, 1), sessions: whole(row, 3) }
}

fn session(row: &Row) -> Session {
    Session {
        pid: value(row, 0).and_then(|text| text.parse().ok()).unwrap_or(0),
        user: name(row, 1),
        database: name(row, 2),
        state: name(row, 3),
        wait: wait(row, 4),
        statement: number(row, 6),
        transaction: number(row, 7),
        query: name(row, 8),
    }
}

fn details(pid: i32, rows: &Rows) -> Details {
    let Some(row) = rows.first() else { return Details { pid, ..Details::default() } };
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    let fields = vec![
        ("user", name(row, 1)),
        ("database", name(row, 2)),
        ("application", or_none(name(row, 9))),
        ("state", name(row, 3)),
        ("wait event", or_none(wait(row, 4).unwrap_or_default())),
        ("connected", name(row, 10)),
        ("transaction", or_none(name(row, 11))),
        ("statement", or_none(name(row, 12))),
        ("state since", name(row, 13)),
    ];
    Details { pid, fields, query: value(row, 8).map(clean::lines).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<&str>]) -> Vec<Option<String>> {
        values.iter().map(|value| value.map(str::to_owned)).collect()
    }

    #[test]
    fn unknown_times_stay_unknown_and_texts_are_clean() {
        let silent = core(&row(&[Some("core 0"), None, None]));
        assert_eq!((silent.name.as_str(), silent.times), ("core 0", None));
        let known = core(&row(&[Some("core 0"), Some("1500"), Some("20")]));
        assert_eq!(known.times, Some((1.5, 0.02)));
        let hostile = session(&row(&[
            Some("7"),
            Some("\u{1b}[2Ju"),
            None,
            Some("active"),
            Some("Lock"),
            Some("tuple"),
            Some("NaN"),
            Some("1.5"),
            Some("select\n\u{7}1"),
        ]));
        assert_eq!((hostile.pid, hostile.user.as_str(), hostile.query.as_str()), (7, "?[2Ju", "select ?1"));
        assert_eq!((hostile.wait.as_deref(), hostile.statement), (Some("Lock/tuple"), None));
    }

    #[test]
    fn only_a_user_who_asks_opens_the_counters_and_refused_ones_are_none() {
        let of = |counters| statements(Wanted { counters, open: Some(7) });
        assert!(!of(false).contains("allcore_counters") && of(true).contains("allcore_counters"));
        let read = counters(&vec![
            row(&[Some("4000000000"), Some("5000000000"), None, None]),
            row(&[None, None, Some("7"), Some("cycles:\u{1b} no")]),
        ]);
        let [first, second] = read.cores[..] else { panic!("{read:?}") };
        assert_eq!((first.cycles, first.instructions, first.cache_misses), (Some(4e9), Some(5e9), None));
        assert_eq!((second.cycles, second.instructions, second.cache_misses), (None, None, Some(7.0)));
        assert_eq!(read.refused.as_deref(), Some("cycles:? no"));
    }

    #[test]
    fn a_session_that_has_ended_has_no_details() {
        let gone = details(9, &Vec::new());
        assert_eq!((gone.pid, gone.fields.len()), (9, 0));
    }
}
