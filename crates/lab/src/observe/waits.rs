//! What a server's sessions wait for: its own view of them, read every quarter of a second over a connection beside the
//! load.
//!
//! What must hold:
//! 1. Only waits are called so. A MySQL server's states tell what a session does as well, which is marked ([`IN_STATE`]).
//! 2. The connection is asked on a thread of its own, so that a server too busy to answer holds up nobody.
//! 3. A connection is made for each round, and ends with it: other arms' rounds on the same database would have it as a
//!    session that waits for its client.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use sync::atomic::{AtomicU32, Ordering};

use crate::arm::control::Control;
use crate::arm::{self, Dialect, Target};
use crate::record::{Profile, Share};

/// How often sessions are looked at.
const INTERVAL: Duration = Duration::from_millis(250);

pub type Connect = Box<dyn FnMut() -> Result<Box<dyn arm::Ask>, String> + Send>;

pub fn connect_to(target: &Target) -> Connect {
    let target = target.clone();
    Box::new(move || match Control::connect(&target) {
        Ok(control) => Ok(Box::new(control)),
        Err(fault) => Err(fault.to_string()),
    })
}

/// Samples of one round, or why there are none.
pub(super) type Samples = Result<Profile, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The round with this number, for which a connection is made.
    Begin(u64),
    /// It is asked for the first time.
    Ask,
    End,
}

/// Why there is nothing of a round in which nobody was asked.
const NOT_ASKED: &str = "the round was over before perf had sampled, beside which nothing is asked; longer rounds (--round) \
                         show more";

/// In place of a process where there is none.
const NO_PROCESS: u32 = 0;

/// Reads what sessions wait for, on its own thread, which ends with it.
pub(super) struct Waits {
    orders: Sender<Order>,
    samples: Receiver<(u64, Samples)>,
    round: u64,
    asks: bool,
    /// Of the connection's session.
    process: Arc<AtomicU32>,
}

impl Waits {
    pub(super) fn new(dialect: Dialect, mut connect: Connect) -> Self {
        let (orders, taken) = channel();
        let (given, samples) = channel();
        let process = Arc::new(AtomicU32::new(NO_PROCESS));
        let known = Arc::clone(&process);
        std::thread::spawn(move || {
            while let Ok(order) = taken.recv() {
                let Order::Begin(round) = order else { continue };
                let result = sample(dialect, &mut connect, &known, &taken);
                known.store(NO_PROCESS, Ordering::Relaxed);
                if given.send((round, result)).is_err() {
                    return;
                }
            }
        });
        Self { orders, samples, round: 0, asks: false, process }
    }

    /// A round begins: connects, and asks nothing yet.
    pub(super) fn begin(&mut self) {
        self.round += 1;
        self.asks = false;
        // The round before, where it failed, may not have been ended.
        self.order(Order::End);
        self.order(Order::Begin(self.round));
    }

    pub(super) fn ask(&mut self) {
        if !std::mem::replace(&mut self.asks, true) {
            self.order(Order::Ask);
        }
    }

    /// The process of the session that asks, where the server has one for each.
    pub(super) fn process(&self) -> Option<u32> {
        // Relaxed: nothing else is handed over by it.
        Some(self.process.load(Ordering::Relaxed)).filter(|process| *process != NO_PROCESS)
    }

    pub(super) fn end(&self) {
        self.order(Order::End);
    }

    /// What was seen from the first question to the end.
    pub(super) fn samples(&self) -> Samples {
        const PATIENCE: Duration = Duration::from_secs(5);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.samples.recv_timeout(left) {
                Ok((round, samples)) if round == self.round => return samples,
                // Of an earlier round, whose end nobody waited for.
                Ok(_) => {}
                Err(_) => return Err("the server did not answer within 5 seconds".into()),
            }
        }
    }

    fn order(&self, order: Order) {
        self.orders.send(order).expect("the sampling thread ends after this one");
    }
}

fn sample(dialect: Dialect, connect: &mut Connect, process: &AtomicU32, orders: &Receiver<Order>) -> Samples {
    let mut control = connect()?;
    let sql = statement(dialect, control.as_mut())?;
    process.store(own_process(dialect, control.as_mut()).unwrap_or(NO_PROCESS), Ordering::Relaxed);
    if orders.recv() != Ok(Order::Ask) {
        return Err(NOT_ASKED.into());
    }
    let mut counts = HashMap::new();
    let mut looks = 0;
    loop {
        let reply = control.ask(&sql)?;
        looks += u64::from(reply.rows() > 0);
        for row in 0..reply.rows() {
            if let (Some(name), Some(count)) = (reply.text(row, 0), reply.int(row, 1)) {
                *counts.entry(name.to_string()).or_insert(0) += count.max(0) as u64;
            }
        }
        match orders.recv_timeout(INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(profile(counts, looks)),
        }
    }
}

/// The process of this session, of a server that has one for each.
fn own_process(dialect: Dialect, control: &mut dyn arm::Ask) -> Option<u32> {
    match dialect {
        Dialect::Postgres => control.ask("SELECT pg_backend_pid()").ok()?.int(0, 0)?.try_into().ok(),
        Dialect::Mysql => None,
    }
}

/// Names counted in so many looks as shares, the largest first.
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

/// A session that works, or has the CPU to wait for.
pub const RUNNING: &str = "running";

/// A session that waits for its client's next statement.
pub const CLIENT: &str = "for the client";

/// How a state begins of which the server does not say whether it is a wait.
pub const IN_STATE: &str = "in state ";

/// A session that waits for a row of InnoDB's, which states do not tell from work on tables.
const ROW_LOCK: &str = "InnoDB row lock";

/// The statement that counts this server's sessions by what they wait for.
fn statement(dialect: Dialect, control: &mut dyn arm::Ask) -> Result<String, String> {
    match dialect {
        Dialect::Postgres => Ok(format!(
            "SELECT CASE WHEN wait_event IS NULL THEN '{RUNNING}' WHEN wait_event = 'ClientRead' THEN '{CLIENT}' \
             ELSE coalesce(wait_event_type || ':', '') || wait_event END, count(*) \
             FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY 1"
        )),
        Dialect::Mysql => mysql(control),
    }
}

fn mysql(control: &mut dyn arm::Ask) -> Result<String, String> {
    // Only who may see all sessions may ask.
    let row_locks =
        "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
    let may = control.ask(row_locks).is_ok();
    let row_lock = match may {
        true => format!("WHEN id IN ({row_locks}) THEN '{ROW_LOCK}'"),
        false => String::new(),
    };
    let is_wait = "(state LIKE 'Waiting %' OR state LIKE '%lock' OR state = 'User sleep')";
    let of = |table: &str| {
        format!(
            "SELECT CASE WHEN command = 'Sleep' THEN '{CLIENT}' {row_lock} WHEN coalesce(state, '') IN ('', 'executing') \
             THEN '{RUNNING}' WHEN {is_wait} THEN state ELSE concat('{IN_STATE}', state) END, count(*) FROM {table}.processlist \
             WHERE db = database() AND id <> connection_id() GROUP BY 1"
        )
    };
    let (new, old) = (of("performance_schema"), of("information_schema"));
    // MySQL gives the second up for the first, which MariaDB does not have.
    match control.ask(&new) {
        Ok(_) => Ok(new),
        Err(_) => control.ask(&old).map(|_| old),
    }
}

#[cfg(test)]
mod tests;
