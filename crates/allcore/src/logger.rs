//! The server's log on standard error: time in UTC, level, text; or one JSON object a line.
//!
//! A thread of its own writes it, so that no core waits for the log's reader.
//!
//! What must hold:
//!
//! 1. Logging a line never waits. A line that comes while the queue is full is dropped and counted.
//! 2. The number of dropped lines is written before the next line, as soon as the queue takes lines
//!    again.
//! 3. Each line in the queue is counted once when it enters and once when it is written. A count
//!    that leaks would close the queue for good.
//! 4. [`flush`] waits for at most [`FLUSH_LIMIT`], so a reader that has stopped does not keep the
//!    process from ending.
//! 5. Before [`install`] and without its thread, lines are written where they are logged.

mod line;

use crate::settings::{LogFormat, LogLevel};
use log::{LevelFilter, Log, Metadata, Record};
use std::io::Write;
use std::time::Duration;
use sync::OnceLock;
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sync::channel::{Receiver, Sender, channel};

/// Most lines that wait to be written; a line has at most [`line::LONGEST`] bytes.
const WAITING_MOST: usize = 1024;
/// Longest time that [`flush`] waits for the log's reader.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

/// A message to the writing thread.
enum Order {
    Line(String),
    /// Answered once all earlier lines are written.
    Flush(Sender<()>),
}

struct Lines;

static QUEUE: OnceLock<Sender<Order>> = OnceLock::new();
/// Lines in the queue.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static JSON: AtomicBool = AtomicBool::new(false);
static DROPPED: AtomicU64 = AtomicU64::new(0);

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // Relaxed: a line that is logged during a change may have either format.
        let line = line::of(record, runtime::time::wall(), JSON.load(Ordering::Relaxed));
        let Some(queue) = QUEUE.get() else { return write(&line) };
        // Relaxed, here and below: counts order nothing else.
        if WAITING.fetch_add(1, Ordering::Relaxed) < WAITING_MOST && queue.send(Order::Line(line)).is_ok() {
            return;
        }
        WAITING.fetch_sub(1, Ordering::Relaxed);
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }

    fn flush(&self) {
        flush();
    }
}

/// Writes a line. The server goes on if the log cannot be written.
#[expect(clippy::disallowed_methods, reason = "standard error is the server's log")]
fn write(line: &str) {
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

fn write_all(orders: &Receiver<Order>) {
    while let Ok(order) = orders.recv() {
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let json = JSON.load(Ordering::Relaxed);
            write(&line::dropped(dropped, runtime::time::wall(), json));
        }
        match order {
            Order::Line(line) => {
                write(&line);
                WAITING.fetch_sub(1, Ordering::Relaxed);
            }
            // The caller may have given up.
            Order::Flush(done) => drop(done.send(())),
        }
    }
}

/// Sends all log lines to standard error.
pub fn install(format: LogFormat, level: LogLevel) {
    if log::set_logger(&Lines).is_ok() {
        let (queue, orders) = channel();
        if runtime::spawn_thread("log", move || write_all(&orders)).is_ok() {
            let _ = QUEUE.set(queue);
        }
    }
    set(format, level);
}

/// Changes the format and the level.
pub fn set(format: LogFormat, level: LogLevel) {
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
    log::set_max_level(match level {
        LogLevel::Error => LevelFilter::Error,
        LogLevel::Warn => LevelFilter::Warn,
        LogLevel::Info => LevelFilter::Info,
        LogLevel::Debug => LevelFilter::Debug,
    });
}

/// Prints the reason why the command failed: one line, in the log's format if that is JSON.
pub fn last_line(fault: &str) {
    let fault = fault.trim().replace('\n', "; ");
    match JSON.load(Ordering::Relaxed) {
        true => log::error!("{fault}"),
        false => {
            flush();
            write(&format!("allcore: {fault}\n"));
        }
    }
}

/// Waits until the lines logged so far are written, for at most [`FLUSH_LIMIT`].
pub fn flush() {
    let Some(queue) = QUEUE.get() else { return };
    let (done, answer) = channel();
    if queue.send(Order::Flush(done)).is_ok() {
        let _ = answer.recv_timeout(FLUSH_LIMIT);
    }
}
