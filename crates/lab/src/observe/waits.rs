//! Wait events of a server's sessions: the server's own view, read every 250 ms over a connection
//! beside the load.
//!
//! What must hold:
//! 1. Only waits are called waits. A MySQL server's states also name a session's work; such a state
//!    has a mark ([`IN_STATE`]).
//! 2. A thread of its own asks over the connection, so that a busy server delays nothing else.
//! 3. Each round makes a connection when perf no longer samples, so that perf never sees it. The
//!    connection ends with the round: in other arms' rounds on the same database it would be a
//!    session that waits for its client.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::arm::control::{Control, Row};
use crate::arm::{Dialect, Target};
use crate::record::{Profile, Share};

/// Interval between two samples of the sessions.
const INTERVAL: Duration = Duration::from_millis(250);

/// Runs one statement; returns its rows, or the server's own message.
pub type Ask = Box<dyn FnMut(&str) -> Result<Vec<Row>, String>>;

/// Connects to the server whose sessions are sampled.
pub type Connect = Arc<dyn Fn() -> Result<Ask, String> + Send + Sync>;

pub fn connect_to(target: &Target) -> Connect {
    let target = target.clone();
    Arc::new(move || {
        let mut control = Control::connect(&target)?;
        Ok(Box::new(move |sql: &str| Ok(control.query(sql)?)))
    })
}

/// Samples of one round, or the reason for their absence.
type Samples = Result<Profile, String>;

/// The reason for the absence of samples in a round without questions.
const NOT_ASKED: &str = "the round was over before perf had sampled, and the lab asks only after that; longer rounds \
                         (--round) show more";

/// Reads what sessions wait for, in one round.
pub(super) struct Waits {
    /// Dropping the sender ends the questions.
    end: Option<Sender<()>>,
    samples: Receiver<Samples>,
}

impl Waits {
    /// Connects, and asks from now on, or once the file `after` exists.
    pub(super) fn begin(dialect: Dialect, connect: &Connect, after: Option<PathBuf>) -> Self {
        let connect = Arc::clone(connect);
        let ((end, ended), (give, samples)) = (channel(), channel());
        // The receiver is gone where the round was abandoned.
        std::thread::spawn(move || _ = give.send(sample(dialect, &connect, after, &ended)));
        Self { end: Some(end), samples }
    }

    pub(super) fn end(&mut self) {
        self.end = None;
    }

    /// The samples from the first question to the end.
    pub(super) fn samples(self) -> Samples {
        const ANSWER_MAX: Duration = Duration::from_secs(5);
        self.samples.recv_timeout(ANSWER_MAX).map_err(|_| "the server did not answer within 5 seconds")?
    }
}

fn sample(dialect: Dialect, connect: &Connect, after: Option<PathBuf>, ended: &Receiver<()>) -> Samples {
    const LOOK: Duration = Duration::from_millis(10);
    let is_over = |within| ended.recv_timeout(within) != Err(RecvTimeoutError::Timeout);
    while after.as_ref().is_some_and(|file| !file.exists()) {
        if is_over(LOOK) {
            return Err(NOT_ASKED.into());
        }
    }
    let mut ask = connect()?;
    let sql = statement(dialect, &mut ask);
    let mut counts = HashMap::new();
    let mut looks = 0;
    loop {
        let rows = ask(&sql)?;
        looks += u64::from(!rows.is_empty());
        for row in rows {
            if let [Some(name), Some(count)] = &row[..] {
                *counts.entry(name.clone()).or_insert(0) += count.parse().unwrap_or(0);
            }
        }
        if is_over(INTERVAL) {
            return Ok(profile(counts, looks));
        }
    }
}

/// Counts by name as shares of `looks` samples, the largest first.
fn profile(counts: HashMap<String, u64>, looks: u64) -> Profile {
    let all: u64 = counts.values().sum();
    let mut shares: Vec<Share> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| Share { name, share: count as f64 / all as f64 })
        .collect();
    shares.sort_by(|one, other| other.share.total_cmp(&one.share).then_with(|| one.name.cmp(&other.name)));
    Profile { samples: looks, shares }
}

/// A session that runs, or waits for the CPU.
pub const RUNNING: &str = "running";

/// A session that waits for its client's next statement.
pub const CLIENT: &str = "for the client";

/// The beginning of a state that may or may not be a wait: the server does not say.
pub const IN_STATE: &str = "in state ";

/// A session that waits for a row of InnoDB: the states do not distinguish this from work on
/// tables.
const ROW_LOCK: &str = "InnoDB row lock";

/// The statement that counts this server's sessions by wait event.
fn statement(dialect: Dialect, ask: &mut Ask) -> String {
    match dialect {
        Dialect::Postgres => format!(
            "SELECT CASE WHEN wait_event IS NULL THEN '{RUNNING}' WHEN wait_event = 'ClientRead' THEN '{CLIENT}' \
             ELSE coalesce(wait_event_type || ':', '') || wait_event END, count(*) \
             FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY 1"
        ),
        Dialect::Mysql => mysql(ask),
    }
}

fn mysql(ask: &mut Ask) -> String {
    // Only a user who may see all sessions may read them.
    let row_locks =
        "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    let may = ask(row_locks).is_ok();
    let row_lock = match may {
        true => format!("WHEN id IN ({row_locks}) THEN '{ROW_LOCK}'"),
        false => String::new(),
    };
    let is_wait = "(state LIKE 'Waiting %' OR state LIKE '%lock' OR state = 'User sleep')";
    format!(
        "SELECT CASE WHEN command = 'Sleep' THEN '{CLIENT}' {row_lock} WHEN coalesce(state, '') IN ('', \
         'executing') THEN '{RUNNING}' WHEN {is_wait} THEN state ELSE concat('{IN_STATE}', state) END, count(*) \
         FROM information_schema.processlist WHERE db = database() AND id <> connection_id() GROUP BY 1"
    )
}

#[cfg(test)]
mod tests;
