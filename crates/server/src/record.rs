//! The server log's lines about clients.
//!
//! Each line names the client, its user and database, and the SQLSTATE as fields. What a client chose itself is written
//! without control characters, so that it can't make a line look like another one.

mod refusals;

use crate::login::StartupRequest;
use refusals::{Omitted, REFUSALS, SECOND, Verdict};
use runtime::net::Peer;
use sql::session::Session;
use sql::{SqlError, SqlState};
use std::fmt;
use std::time::Duration;
use sync::atomic::{AtomicU64, Ordering};

/// Lines of a kind that may come in floods: one a second is logged, the others are counted.
struct Flood {
    said: AtomicU64,
    unsaid: AtomicU64,
}

static FAILURES: Flood = Flood::new();
static CROWDED: Flood = Flood::new();

impl Flood {
    const fn new() -> Self {
        Self { said: AtomicU64::new(0), unsaid: AtomicU64::new(0) }
    }

    /// Whether one more is to be logged: how many were not since the last one.
    fn admit(&self) -> Option<u64> {
        // Relaxed, all of them: a line more or less in a second does no harm.
        let now = runtime::time::precise();
        let last = self.said.load(Ordering::Relaxed);
        if last != 0 && now.saturating_sub(last) < SECOND {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.said.store(now, Ordering::Relaxed);
        Some(self.unsaid.swap(0, Ordering::Relaxed))
    }
}

/// Text on one line, whatever it holds.
pub struct OneLine<'a>(pub &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        self.0.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => f.write_char(c),
        })
    }
}

/// Where a client comes from, as the log shows it.
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

/// A client whose connection matters to the log.
pub struct Client<'a> {
    /// Where it comes from.
    pub peer: &'a Peer,
    /// The user and database it asked for, once it has.
    pub request: Option<&'a StartupRequest>,
    /// Its session's number; 0 before it has one.
    pub session: u32,
}

/// Whether the log has a line for this refusal of a client, which is not in yet. Where not, it counts the refusal, and says
/// how many there were when their second is over.
fn is_said(code: SqlState, peer: &Peer) -> bool {
    let now = runtime::time::precise();
    let (over, verdict) = {
        let mut refusals = REFUSALS.lock();
        (refusals.over(now), refusals.admit(code, peer, now))
    };
    say_omitted(over);
    // The thread that talks to clients while the server starts has no timers: it says so with its next line.
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

/// An error that ends a connection.
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

/// A statement's error, with the statement where the session's settings ask for it. Of errors that an operator has to see to
/// (the disk is full, a page is damaged, the engine is at fault) at most one a second is logged, and how many were left out.
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
    let (code, from, message) = (fault.code.as_str(), Origin(peer), OneLine(&fault.message));
    let place = fault.position.map(|position| format!(" at character {position}")).unwrap_or_default();
    let (user, number) = (session.user(), session.id());
    match session.failed_statement() {
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

/// A TLS connection that came to nothing: the client speaks another version, or trusts another certificate.
#[cold]
pub fn tls_failed(peer: &Peer, fault: &std::io::Error) {
    let code = SqlState::PROTOCOL_VIOLATION;
    if is_said(code, peer) {
        let message = fault.to_string();
        log::warn!(
            sqlstate = code.as_str(), client:% = Origin(peer);
            "could not accept a TLS connection: {}", OneLine(&message)
        );
    }
}

/// Whether a statement's error is the operator's business.
#[inline]
pub fn concerns_operator(code: SqlState) -> bool {
    code == SqlState::DISK_FULL || matches!(code.as_str().get(..2), Some("58" | "XX"))
}

/// There are so many connections that further ones are not accepted until some have gone.
#[cold]
pub fn crowded(peer: &Peer, connections: usize) {
    let Some(unsaid) = CROWDED.admit() else { return };
    log::warn!(
        client:% = Origin(peer), unsaid = unsaid;
        "{connections} connections are open, of sessions and of clients on their way in: further ones wait"
    );
}
