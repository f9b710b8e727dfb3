//! What a server's sessions wait for: its own view of them, read every quarter of a second over a connection beside the
//! load.
//!
//! What must hold:
//! 1. The connection is asked on a thread of its own, so that a server too busy to answer holds up nobody.
//! 2. A connection that was lost is made anew at the next round.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::arm::control::Control;
use crate::arm::{self, Dialect, Target};
use crate::report::Share;

/// How often sessions are looked at.
const INTERVAL: Duration = Duration::from_millis(250);

/// Makes a connection to ask.
pub type Connect = Box<dyn FnMut() -> Result<Box<dyn arm::Ask>, String> + Send>;

/// Makes control connections to a target.
pub fn connect_to(target: &Target) -> Connect {
    let target = target.clone();
    Box::new(move || match Control::connect(&target) {
        Ok(control) => Ok(Box::new(control)),
        Err(fault) => Err(fault.to_string()),
    })
}

/// Samples of one round, or why there are none.
pub(super) type Samples = Result<Vec<Share>, String>;

enum Order {
    /// Of the round with this number.
    Begin(u64),
    End,
}

/// Reads what sessions wait for, on its own thread, which ends with it.
pub(super) struct Waits {
    orders: Sender<Order>,
    samples: Receiver<(u64, Samples)>,
    round: u64,
}

impl Waits {
    pub(super) fn new(dialect: Dialect, mut connect: Connect) -> Self {
        let (orders, taken) = channel();
        let (given, samples) = channel();
        std::thread::spawn(move || {
            let mut asked = None;
            while let Ok(order) = taken.recv() {
                let Order::Begin(round) = order else { continue };
                let result = sample(dialect, &mut connect, &mut asked, &taken);
                if result.is_err() {
                    asked = None;
                }
                if given.send((round, result)).is_err() {
                    return;
                }
            }
        });
        Self { orders, samples, round: 0 }
    }

    /// From now on.
    pub(super) fn begin(&mut self) {
        self.round += 1;
        self.order(Order::Begin(self.round));
    }

    /// Until now.
    pub(super) fn end(&self) {
        self.order(Order::End);
    }

    /// What was seen between the two.
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

/// A connection, and the statement that shows what sessions wait for.
type Asked = Option<(Box<dyn arm::Ask>, String)>;

fn sample(dialect: Dialect, connect: &mut Connect, asked: &mut Asked, orders: &Receiver<Order>) -> Samples {
    let (control, sql) = match asked {
        Some(asked) => asked,
        None => {
            let mut control = connect()?;
            let sql = statement(dialect, control.as_mut())?;
            asked.insert((control, sql))
        }
    };
    let mut counts = HashMap::new();
    loop {
        let reply = control.ask(sql)?;
        for row in 0..reply.rows() {
            if let (Some(name), Some(count)) = (reply.text(row, 0), reply.int(row, 1)) {
                *counts.entry(name.to_string()).or_insert(0) += count;
            }
        }
        match orders.recv_timeout(INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(shares(counts)),
        }
    }
}

/// Counted names as shares, the largest first.
fn shares(counts: HashMap<String, i64>) -> Vec<Share> {
    let all: i64 = counts.values().sum();
    let mut shares: Vec<Share> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| Share { name, share: count as f64 / all as f64 })
        .collect();
    shares.sort_by(|one, other| other.share.total_cmp(&one.share).then_with(|| one.name.cmp(&other.name)));
    shares
}

/// A session that works, or has the CPU to wait for.
pub const RUNNING: &str = "running";

/// A session that waits for its client's next statement.
pub const CLIENT: &str = "for the client";

/// The statement that counts this server's sessions by what they wait for.
fn statement(dialect: Dialect, control: &mut dyn arm::Ask) -> Result<String, String> {
    match dialect {
        Dialect::Postgres => Ok(format!(
            "SELECT CASE WHEN wait_event IS NULL THEN '{RUNNING}' WHEN wait_event = 'ClientRead' THEN '{CLIENT}' \
             ELSE coalesce(wait_event_type || ':', '') || wait_event END, count(*) \
             FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() GROUP BY 1"
        )),
        Dialect::Mysql => {
            // Off unless somebody switched it on: it costs throughput, so it is not switched on here.
            let consumer = "SELECT enabled FROM performance_schema.setup_consumers WHERE name = 'events_waits_current' \
                            AND enabled = 'YES' AND @@performance_schema";
            if control.ask(consumer).is_ok_and(|reply| reply.rows() > 0) {
                // A thread has a row for each wait it is in, and waits lie in one another: the innermost is the one that
                // began last. These tables have no index, so it is picked by one pass, behind its number's 20 digits.
                return Ok(format!(
                    "SELECT CASE WHEN command = 'Sleep' THEN '{CLIENT}' WHEN coalesce(substr(innermost, 21), '') = '' \
                     THEN '{RUNNING}' ELSE substr(innermost, 21) END, count(*) FROM (SELECT t.thread_id, \
                     t.processlist_command AS command, max(concat(lpad(w.event_id, 20, '0'), \
                     CASE WHEN w.end_event_id IS NULL THEN w.event_name ELSE '' END)) AS innermost \
                     FROM performance_schema.threads t LEFT JOIN performance_schema.events_waits_current w \
                     USING (thread_id) WHERE t.processlist_db = database() AND t.processlist_id <> connection_id() \
                     GROUP BY t.thread_id, t.processlist_command) sessions GROUP BY 1"
                ));
            }
            let of = |table: &str| {
                format!(
                    "SELECT CASE WHEN command = 'Sleep' THEN '{CLIENT}' WHEN coalesce(state, '') IN ('', 'executing') \
                     THEN '{RUNNING}' ELSE state END, count(*) FROM {table}.processlist \
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
    }
}

#[cfg(test)]
mod tests;
