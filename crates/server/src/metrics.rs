//! The engine's counts over HTTP, in the text format that Prometheus reads.
//!
//! A thread of its own answers, so that a server whose cores are all busy still tells. It answers
//! `GET /metrics` and then closes the connection. What must hold: the answer needs no worker, and
//! no lock that a worker holds for long.

use std::fmt::{self, Write as _};

use runtime::net::{Greet, Peer, Talk};
use runtime::workers::WorkerUse;
use sql::database::Database;
use sync::profile::{self, Counts};

use crate::record;

/// Longest head of a request, in bytes.
const LONGEST_HEAD: usize = 8 << 10;
/// Most header fields of a request.
const MOST_FIELDS: usize = 64;

/// Answers those who ask for the counts of `database`; [`runtime::net::Door`] calls it.
#[must_use]
pub fn metrics(database: Database) -> Box<Greet> {
    Box::new(move |peer| Box::new(Scrape { database: database.clone(), peer }))
}

/// The exchange with one client.
struct Scrape {
    database: Database,
    peer: Peer,
}

impl Talk for Scrape {
    fn hear(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        let Some(request) = request(input) else { return true };
        let answer = match request {
            Request::Page { head_only } => response("200 OK", "", &page(&self.database), head_only),
            Request::Refused { status, field, body, head_only } => response(status, field, body, head_only),
        };
        out.extend_from_slice(answer.as_bytes());
        false
    }

    fn evicted(&self, slots: usize) {
        record::scrape_evicted(&self.peer, slots);
    }
}

/// A request, or the first part of one that already shows a fault.
#[derive(Debug, PartialEq)]
enum Request {
    Page {
        head_only: bool,
    },
    /// `field` is a header field with its line end, or empty.
    Refused {
        status: &'static str,
        field: &'static str,
        body: &'static str,
        head_only: bool,
    },
}

impl Request {
    fn refused(status: &'static str, body: &'static str) -> Self {
        Self::Refused { status, field: "", body, head_only: false }
    }
}

/// Reads a request; None while its head is not complete. A query behind the path is left out.
fn request(input: &[u8]) -> Option<Request> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(input) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if input.len() <= LONGEST_HEAD => return None,
        Ok(httparse::Status::Partial) if parsed.version.is_none() => {
            return Some(Request::refused("414 URI Too Long", "the request line is too long\n"));
        }
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let status = "431 Request Header Fields Too Large";
            return Some(Request::refused(status, "the header fields are too many or too long\n"));
        }
        Err(_) => return Some(Request::refused("400 Bad Request", "not a request of HTTP/1\n")),
    }
    let head_only = parsed.method == Some("HEAD");
    let path = parsed.path.and_then(|path| path.split('?').next());
    Some(match (parsed.method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => Request::Page { head_only },
        (Some("GET" | "HEAD"), _) => {
            Request::Refused { status: "404 Not Found", field: "", body: "see /metrics\n", head_only }
        }
        _ => Request::Refused {
            status: "405 Method Not Allowed",
            field: "Allow: GET, HEAD\r\n",
            body: "GET or HEAD\n",
            head_only: false,
        },
    })
}

fn response(status: &str, field: &str, body: &str, head_only: bool) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{field}Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{}",
        body.len(),
        if head_only { "" } else { body }
    )
}

/// A page of metrics in the making.
struct Page(String);

impl Page {
    /// Begins a metric; `kind` is `counter` or `gauge`.
    fn metric(&mut self, name: &'static str, kind: &str, help: &str) -> Metric<'_> {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Metric { page: &mut self.0, name }
    }

    /// A counter without labels.
    fn counter(&mut self, name: &'static str, help: &str, value: impl fmt::Display) {
        self.metric(name, "counter", help).sample(&[], value);
    }

    /// A gauge without labels.
    fn gauge(&mut self, name: &'static str, help: &str, value: impl fmt::Display) {
        self.metric(name, "gauge", help).sample(&[], value);
    }
}

/// A metric whose samples are being written.
struct Metric<'p> {
    page: &'p mut String,
    name: &'static str,
}

impl Metric<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: impl fmt::Display) {
        let quoted = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", quoted(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // Writing into a string does not fail.
        let _ = writeln!(self.page, "{}{labels} {value}", self.name);
    }
}

/// The counts as they are now.
fn page(database: &Database) -> String {
    let mut page = Page(String::with_capacity(8 << 10));
    databases(&mut page, database);
    sessions(&mut page, database);
    workers(&mut page, database);
    counters(&mut page, database);
    buffers(&mut page, database);
    log(&mut page, database);
    locks(&mut page);
    page.0
}

fn databases(page: &mut Page, database: &Database) {
    let counts = database.counts();
    let mut sessions = page.metric("allcore_sessions", "gauge", "Sessions by database.");
    for one in &counts {
        sessions.sample(&[("database", &one.database.1)], one.sessions);
    }
    let mut ended = page.metric("allcore_transactions_total", "counter", "Ended transactions by database.");
    for one in &counts {
        ended.sample(&[("database", &one.database.1), ("end", "commit")], one.committed);
        ended.sample(&[("database", &one.database.1), ("end", "rollback")], one.rolled_back);
    }
}

fn sessions(page: &mut Page, database: &Database) {
    let summary = database.activity_summary();
    let mut groups =
        page.metric("allcore_sessions_by_wait", "gauge", "Sessions by state and by what they wait for.");
    for ((state, kind, event), count) in summary.groups {
        groups.sample(&[("state", state), ("wait_event_type", kind), ("wait_event", event)], count);
    }
    for (name, help, age) in [
        (
            "allcore_oldest_transaction_seconds",
            "Age of the oldest open transaction.",
            summary.oldest_transaction,
        ),
        (
            "allcore_oldest_statement_seconds",
            "Age of the oldest running statement.",
            summary.oldest_statement,
        ),
    ] {
        page.gauge(name, help, age.as_secs_f64());
    }
}

fn workers(page: &mut Page, database: &Database) {
    let workers = database.runtime().workers_in_use();
    let mut sessions = page.metric("allcore_worker_sessions", "gauge", "Sessions by worker.");
    for one in &workers {
        sessions.sample(&[("worker", &one.name)], one.sessions);
    }
    let mut fibers = page.metric("allcore_worker_fibers", "gauge", "Fibers with work by worker.");
    for one in &workers {
        fibers.sample(&[("worker", &one.name)], one.fibers);
    }
    let mut turns = page.metric("allcore_worker_turns_total", "counter", "Turns of each worker's loop.");
    for one in &workers {
        turns.sample(&[("worker", &one.name)], one.turns);
    }
    for (name, help, count) in [
        (
            "allcore_worker_sleeps_total",
            "Times each worker slept.",
            (|one| one.sleeps) as fn(&WorkerUse) -> u64,
        ),
        ("allcore_worker_events_total", "Events that each worker's reactor took.", |one| one.events),
        ("allcore_worker_served_total", "Sessions in each worker's rounds.", |one| one.served),
        ("allcore_worker_file_operations_total", "File operations by worker.", |one| one.file_operations),
        ("allcore_worker_moved_in_total", "Sessions that each core got from others.", |one| one.moved_in),
        ("allcore_worker_moved_out_total", "Sessions that each core gave to others.", |one| one.moved_out),
    ] {
        let mut counts = page.metric(name, "counter", help);
        for one in &workers {
            counts.sample(&[("worker", &one.name)], count(one));
        }
    }
    let mut times =
        page.metric("allcore_worker_processor_seconds_total", "counter", "Processor time by worker.");
    for one in &workers {
        if let Some(taken) = one.times {
            times.sample(&[("worker", &one.name), ("mode", "user")], taken.user.as_secs_f64());
            times.sample(&[("worker", &one.name), ("mode", "system")], taken.system.as_secs_f64());
        }
    }
    let mut faults = page.metric("allcore_page_faults_total", "counter", "Page faults by thread.");
    for one in database.runtime().page_faults() {
        faults.sample(&[("thread", &one.thread), ("kind", "minor")], one.minor);
        faults.sample(&[("thread", &one.thread), ("kind", "major")], one.major);
    }
}

/// Hardware and software counters of the workers, once a look at allcore_counters has opened them.
/// They cost a little at each context switch from then on, which no scrape decides.
fn counters(page: &mut Page, database: &Database) {
    let workers = database.runtime().opened_worker_counts();
    if workers.is_empty() {
        return;
    }
    let mut events = page.metric(
        "allcore_counters_total",
        "counter",
        "Events by worker since the first look at allcore_counters.",
    );
    for one in &workers {
        for (event, count) in one.counts.events {
            // The time is that of allcore_worker_processor_seconds_total.
            if let (true, Some(count)) = (event != "task_clock", count) {
                events.sample(&[("worker", &one.name), ("event", event)], count);
            }
        }
    }
}

fn buffers(page: &mut Page, database: &Database) {
    let pool = database.folder().buffers();
    page.gauge("allcore_buffer_frames", "Frames of the page pool.", pool.frames);
    page.gauge("allcore_buffer_frames_in_use", "Frames that have come into use.", pool.in_use);
    let mut free = page.metric("allcore_buffer_frames_free", "gauge", "Free frames by NUMA node.");
    for (node, frames) in pool.free.iter().enumerate() {
        free.sample(&[("node", &node.to_string())], frames);
    }
    page.gauge("allcore_buffer_hand", "The clock sweep's next frame.", pool.hand);
    page.gauge("allcore_buffer_sweep_batch", "Frames that a core claims at a time.", pool.sweep_batch);
    let mut pages = page.metric("allcore_buffer_page_kind", "gauge", "The kind of the buffers' pages, as 1.");
    pages.sample(&[("pages", pool.kind.name())], 1);
    let counts = pool.statistics;
    for (name, help, count) in [
        ("allcore_buffer_passes_total", "Complete passes of the clock sweep.", counts.passes),
        ("allcore_buffer_allocations_total", "Frames handed out for pages.", counts.allocations),
        ("allcore_buffer_loads_total", "Pages read from disk.", counts.loads),
        ("allcore_buffer_read_waits_total", "Waits for pages to be read.", counts.reads),
        ("allcore_buffer_evictions_total", "Pages evicted.", counts.evictions),
        ("allcore_buffer_writes_total", "Pages written.", counts.writes),
        ("allcore_buffer_write_failures_total", "Batches of page writes that failed.", counts.write_failures),
    ] {
        page.counter(name, help, count);
    }
}

fn log(page: &mut Page, database: &Database) {
    let log = database.folder().log();
    page.counter("allcore_log_reserved_bytes_total", "End of the log's reserved part.", log.position.0);
    // It may step back for a moment, which a counter must not.
    page.gauge("allcore_log_filled_bytes", "End of the log's filled part.", log.filled.0);
    page.counter("allcore_log_durable_bytes_total", "End of the log's durable part.", log.durable.0);
    page.counter("allcore_log_writes_total", "Writes of the log.", log.writes.departures);
    page.counter("allcore_log_written_bytes_total", "Bytes that these wrote.", log.writes.bytes);
    page.counter("allcore_log_served_total", "Sessions whose wait a log write ended.", log.writes.served);
    page.gauge("allcore_log_writes_in_flight", "Log writes under way.", log.writes.in_flight);
    let sessions = log.writes.sessions_in_flight;
    page.gauge("allcore_log_sessions_in_flight", "Sessions that these serve.", sessions);
    page.gauge("allcore_log_segments", "Segments of the log.", log.segments);
}

/// The lock profile. It has no places before the profiler is first enabled.
fn locks(page: &mut Page) {
    let rows = profile::rows();
    for (name, kind, help, value) in [
        (
            "allcore_lock_events_total",
            "counter",
            "Acquisitions, or what the kind says: waits, restarts, refusals.",
            (|one| one.count as f64) as fn(&Counts) -> f64,
        ),
        ("allcore_lock_contended_waits_total", "counter", "Times it had to wait.", |one| {
            one.contended_wait as f64
        }),
        ("allcore_lock_contended_holds_total", "counter", "Holds for which others waited.", |one| {
            one.contended_hold as f64
        }),
        ("allcore_lock_wait_seconds_total", "counter", "Time waited.", |one| one.wait_total as f64 / 1e9),
        ("allcore_lock_hold_seconds_total", "counter", "Time held.", |one| one.hold_total as f64 / 1e9),
        ("allcore_lock_wait_seconds_max", "gauge", "The longest wait.", |one| one.wait_max as f64 / 1e9),
        ("allcore_lock_hold_seconds_max", "gauge", "The longest hold.", |one| one.hold_max as f64 / 1e9),
    ] {
        let mut metric = page.metric(name, kind, help);
        for row in &rows {
            let labels = [("class", row.class), ("site", &row.site), ("kind", row.kind.as_str())];
            metric.sample(&labels, value(&row.counts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status that answers these bytes; None while their request is not complete.
    fn status(bytes: impl AsRef<[u8]>) -> Option<&'static str> {
        request(bytes.as_ref()).map(|request| match request {
            Request::Page { .. } => "200",
            Request::Refused { status, .. } => status.split(' ').next().unwrap(),
        })
    }

    #[test]
    fn a_request_is_read_once_its_head_is_complete() {
        let whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        for part in 0..whole.len() {
            assert_eq!(status(&whole[..part]), None, "{part}");
        }
        for page in [whole, "GET /metrics?a=b HTTP/1.0\r\n\r\n", "\r\n\nGET /metrics HTTP/1.1\nHost: a\n\n"] {
            assert_eq!(request(page.as_bytes()), Some(Request::Page { head_only: false }), "{page:?}");
        }
        let head = request(b"HEAD /metrics HTTP/1.1\n\n");
        assert_eq!(head, Some(Request::Page { head_only: true }));
        assert_eq!(status("GET /metrics/ HTTP/1.1\r\n\r\n"), Some("404"));
        assert_eq!(status("PUT /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\nbody"), Some("405"));
    }

    #[test]
    fn bytes_of_another_protocol_are_refused_before_their_end() {
        for odd in ["GET /metrics\r\n", "GET  /metrics", "GET / HTTP/2", "\x16\x03\x01", "\0", "a: b\r\n"] {
            assert_eq!(status(odd), Some("400"), "{odd:?}");
        }
        assert_eq!(status(b"\xff"), Some("400"));
        assert_eq!(status("GET / HTTP/1.1\r\nno field\r\n"), Some("400"));
    }

    #[test]
    fn a_head_past_its_bounds_gets_the_status_that_names_the_part() {
        let long = "a".repeat(LONGEST_HEAD);
        assert_eq!(status(format!("GET /{long}")), Some("414"));
        assert_eq!(status(&long), None);
        assert_eq!(status(format!("{long}a")), Some("414"));
        assert_eq!(status(format!("GET / HTTP/1.1\r\na: {long}")), Some("431"));
        let fields = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(count));
        assert_eq!(status(fields(MOST_FIELDS)), Some("404"));
        assert_eq!(status(fields(MOST_FIELDS + 1)), Some("431"));
    }

    #[test]
    fn quotes_in_a_label_are_escaped() {
        let mut page = Page(String::new());
        page.metric("m", "gauge", "Text.").sample(&[("a", "x\"y\\z\n"), ("b", "")], 1.5);
        assert_eq!(page.0, "# HELP m Text.\n# TYPE m gauge\nm{a=\"x\\\"y\\\\z\\n\",b=\"\"} 1.5\n");
    }
}
