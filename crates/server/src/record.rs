//! The server log's lines about clients.
//!
//! Each line has the client, its user and database, and the SQLSTATE as fields.
//!
//! What must hold:
//!
//! 1. Text that a client chose is written without control characters, so that it cannot imitate
//!    another line. In the message [`OneLine`] sees to it, and in a field the log does.
//! 2. Lines about clients that are not in yet are bounded ([`is_said`]), because anybody may cause
//!    them.
//! 3. Errors on which the operator has to act come at most once a second. The next line has the
//!    number of those left out, so none goes unnoticed.
//! 4. No line has the password that a statement gives a role.
//! 5. The spin lock of the refusals is free while a line is logged.

mod refusals;

use crate::login::StartupRequest;
use refusals::{Omitted, REFUSALS, SECOND, Verdict};
use runtime::net::Peer;
use sql::session::Session;
use sql::{SqlError, SqlState};
use std::fmt;
use std::time::Duration;
use sync::atomic::{AtomicU64, Ordering};

/// Bounds a kind of line that may come in floods: one line in `every` nanoseconds is logged, the
/// others are counted.
struct Flood {
    every: u64,
    said: AtomicU64,
    unsaid: AtomicU64,
}

static FAILURES: Flood = Flood::new(SECOND);
static CROWDED: Flood = Flood::new(SECOND);
static STARTING_EVICTED: Flood = Flood::new(MINUTE);
static SCRAPE_EVICTED: Flood = Flood::new(MINUTE);

/// Nanoseconds of a minute.
const MINUTE: u64 = 60 * SECOND;

impl Flood {
    const fn new(every: u64) -> Self {
        Self { every, said: AtomicU64::new(0), unsaid: AtomicU64::new(0) }
    }

    /// The number of lines left out since the last one, if another line may be logged.
    fn admit(&self) -> Option<u64> {
        // Relaxed, all of them: one line more or less does no harm.
        let now = runtime::time::precise();
        let last = self.said.load(Ordering::Relaxed);
        if last != 0 && now.saturating_sub(last) < self.every {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.said.store(now, Ordering::Relaxed);
        Some(self.unsaid.swap(0, Ordering::Relaxed))
    }
}

/// Writes text on one line, whatever characters it has.
pub(crate) struct OneLine<'a>(pub &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => f.write_char(c),
        })
    }
}

/// A client's origin, as the log shows it.
struct Origin<'a>(&'a Peer);

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Peer::Tcp(address) => address.fmt(f),
            Peer::Unix { user, process: Some(process) } => write!(f, "local user {user}, process {process}"),
            Peer::Unix { user, process: None } => write!(f, "local user {user}"),
        }
    }
}

/// A client, as the log names it.
pub struct Client<'a> {
    /// Its address.
    pub peer: &'a Peer,
    /// The user and database, once the client has asked for them.
    pub request: Option<&'a StartupRequest>,
    /// Its session's number; 0 before it has one.
    pub session: u32,
}

/// Whether the log gets a line for this refusal of a client that is not in yet. If not, the refusal
/// is counted, and a line at the end of the second has the count.
fn is_said(code: SqlState, peer: &Peer) -> bool {
    let now = runtime::time::precise();
    let (over, verdict) = {
        let mut refusals = REFUSALS.lock();
        (refusals.over(now), refusals.admit(code, peer, now))
    };
    say_omitted(over);
    // The thread that talks to clients during the start has no timers. It logs the count with its
    // next line.
    if verdict == Verdict::FirstOmitted && runtime::try_core().is_some() {
        runtime::timer::after(Duration::from_nanos(SECOND), || {
            let over = REFUSALS.lock().over(runtime::time::precise());
            say_omitted(over);
        });
    }
    verdict == Verdict::Said
}

fn say_omitted(over: Vec<Omitted>) {
    for omitted in over {
        log::warn!(sqlstate = omitted.code.as_str(); "{omitted}");
    }
}

/// Logs an error that ends a connection.
#[cold]
pub fn fatal(client: &Client<'_>, fault: &SqlError) {
    if client.session == 0 && !is_said(fault.code, client.peer) {
        return;
    }
    let level = match fault.code {
        SqlState::ADMIN_SHUTDOWN => log::Level::Info,
        _ => log::Level::Warn,
    };
    let (code, from, message) = (fault.code.as_str(), Origin(client.peer), OneLine(&fault.message));
    match client.request {
        None => log::log!(level, sqlstate = code, client:% = from; "FATAL: {message}"),
        Some(request) => log::log!(
            level,
            sqlstate = code,
            client:% = from,
            user = request.user.as_str(),
            database = request.database.as_str(),
            session = client.session;
            "FATAL: {message}"
        ),
    }
}

/// Logs a statement's error, with the statement if the session's settings ask for it. Errors on
/// which an operator has to act get at most one line a second, with the number left out. These are
/// a full disk, a damaged page and a fault of the engine.
#[cold]
pub fn failure(peer: &Peer, session: &Session, fault: &SqlError) {
    let level = if concerns_operator(fault.code) {
        let Some(unsaid) = FAILURES.admit() else { return };
        if unsaid > 0 {
            log::error!("{unsaid} further statements have failed since the last such line");
        }
        log::Level::Error
    } else {
        log::Level::Warn
    };
    if !log::log_enabled!(level) {
        return;
    }
    let (message, statement) = session.failure_for_log(fault);
    let (code, from, message) = (fault.code.as_str(), Origin(peer), OneLine(&message));
    let place = fault.position.map(|position| format!(" at character {position}")).unwrap_or_default();
    let (user, number) = (session.user(), session.id());
    match statement {
        Some(statement) => log::log!(
            level,
            sqlstate = code,
            client:% = from,
            user = user,
            session = number,
            statement = statement.as_str();
            "ERROR: {message}{place}"
        ),
        None => log::log!(
            level, sqlstate = code, client:% = from, user = user, session = number;
            "ERROR: {message}{place}"
        ),
    }
}

/// Logs a TLS handshake that failed: the client speaks another version, or trusts another
/// certificate.
#[cold]
pub(crate) fn tls_failed(peer: &Peer, fault: &std::io::Error) {
    let code = SqlState::PROTOCOL_VIOLATION;
    if is_said(code, peer) {
        let message = fault.to_string();
        log::warn!(
            sqlstate = code.as_str(), client:% = Origin(peer);
            "could not accept a TLS connection: {}", OneLine(&message)
        );
    }
}

/// Whether the operator has to act on a statement's error.
#[inline]
pub(crate) fn concerns_operator(code: SqlState) -> bool {
    code == SqlState::DISK_FULL || matches!(code.as_str().get(..2), Some("58" | "XX"))
}

/// Logs that so many connections exist that the server accepts no others until some have gone.
#[cold]
pub(crate) fn crowded(peer: &Peer, connections: usize) {
    let Some(unsaid) = CROWDED.admit() else { return };
    log::warn!(
        client:% = Origin(peer), unsaid = unsaid;
        "{connections} connections are open, of sessions and of clients on their way in: further ones wait"
    );
}

/// Logs that a client of the metrics has made room for a newer one.
#[cold]
pub(crate) fn scrape_evicted(peer: &Peer, slots: usize) {
    evicted(&SCRAPE_EVICTED, "metrics", peer, slots);
}

/// Logs that a client that came during the start has made room for a newer one.
#[cold]
pub(crate) fn starting_evicted(peer: &Peer, slots: usize) {
    evicted(&STARTING_EVICTED, "starting server", peer, slots);
}

fn evicted(flood: &Flood, place: &str, peer: &Peer, slots: usize) {
    let Some(unsaid) = flood.admit() else { return };
    log::warn!(
        client:% = Origin(peer), unsaid = unsaid;
        "closed a connection to the {place} for a newer one: {slots} clients send no whole request \
         or do not read their answer; the next line about it comes after 1 min or more"
    );
}
