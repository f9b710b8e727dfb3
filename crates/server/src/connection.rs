//! One session's connection: from its first byte to its last, message by message.
//!
//! The runtime's service worker serves it until the client is let in ([`Next::Enter`]). Then a core
//! does, which may give it to another one between two messages. So a client can connect and cancel
//! however busy the cores are. While every core is held, an administrator's session goes to the
//! runtime's reserve worker.
//!
//! Invariants:
//!
//! - A fault in a message ends this session alone, with 08P01, whatever the bytes are.
//! - After an error in the extended protocol, everything up to the next Sync is skipped.
//! - ReadyForQuery follows every Sync, and every Query that is not skipped, exactly once.
//! - When the connection goes, in whatever way, the session gives back everything it holds.

mod door;
mod room;

use crate::client::WireClient;
use crate::decode::{self, Frame, Violation};
use crate::encode::{self, Severity};
use crate::login::{Sasl, StartupRequest};
use crate::message::{self, Bind, Parse, Target};
use crate::places::Place;
use crate::record::{self, Client};
use crate::shared::{Policy, Shared};
use crate::tls::Tls;
use crate::wire::Wire;
use runtime::interrupt::{Interrupted, Reason};
use runtime::net::{Next, Serve, SessionIo};
use runtime::timer::TimerId;
use smallvec::SmallVec;
use sql::session::{Executed, Session};
use sql::{SqlError, SqlState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Largest statement buffer that an idle session keeps, in bytes.
const KEPT_TEXT: usize = 16 * 1024;

/// The session's next step after a message.
enum Flow {
    /// Goes on to the next message.
    Continue,
    /// Lets the client in: its session is opened on a core, or on the reserve worker.
    Enter { reserve: bool },
    /// Ends the session; the reply so far is still sent.
    Close,
}

/// The reason why the handling of a message broke off.
enum Fault {
    /// An error for the client; the session goes on.
    Sql(SqlError),
    /// An error for the client; the session ends.
    Fatal(SqlError),
    /// The client's bytes cannot be decrypted, or it refuses the server's certificate. No error
    /// message can reach it.
    Tls(io::Error),
    /// The socket is gone, so no error message can be sent.
    Broken,
}

impl From<SqlError> for Fault {
    fn from(fault: SqlError) -> Self {
        if ends_session(fault.code) { Fault::Fatal(fault) } else { Fault::Sql(fault) }
    }
}

impl From<Violation> for Fault {
    fn from(fault: Violation) -> Self {
        Fault::Sql(fault.error())
    }
}

impl From<io::Error> for Fault {
    fn from(fault: io::Error) -> Self {
        // rustls reports its findings as invalid data, and nothing else does.
        if fault.kind() == io::ErrorKind::InvalidData { Fault::Tls(fault) } else { Fault::Broken }
    }
}

/// Errors that end the session, as in PostgreSQL.
fn ends_session(code: SqlState) -> bool {
    matches!(
        code,
        SqlState::ADMIN_SHUTDOWN
            | SqlState::CRASH_SHUTDOWN
            | SqlState::CANNOT_CONNECT_NOW
            | SqlState::DATABASE_DROPPED
            | SqlState::IDLE_SESSION_TIMEOUT
            | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
            | SqlState::TRANSACTION_TIMEOUT
            | SqlState::CONNECTION_FAILURE
    )
}

#[expect(clippy::large_enum_variant, reason = "nearly all connections are live")]
enum Phase {
    /// No start-up packet yet.
    Fresh,
    /// The client is proving its identity.
    Proving(Sasl),
    /// The client has proved its identity. Its session is opened when the connection is served
    /// next.
    Admitted,
    /// Statements are served. Not boxed, so that one prefetch gets the whole session
    /// ([`Serve::prefetch`]).
    Live(Live),
    /// Nothing more is served.
    Over,
}

struct Live {
    session: Session,
    /// Whether a whole message has come since the limit for the next one began.
    heard: bool,
    /// Whether a message of the extended protocol failed: everything up to the next Sync is
    /// skipped.
    skipping: bool,
    /// The type of a message for which there is no memory, and the number of its bytes still to be
    /// thrown away.
    refused: Option<(u8, usize)>,
    /// The text of the running statement, apart from the receive buffer, because a COPY goes on
    /// reading that.
    text: String,
}

/// A connection that the runtime serves.
pub struct Connection {
    shared: Arc<Shared>,
    phase: Phase,
    tls: Option<Box<Tls>>,
    /// Runs while the client must finish logging in, or sits idle in a transaction.
    limit: Option<TimerId>,
    /// Time by which the client must have logged in, or sent its next message completely, by the
    /// runtime's clock.
    ends: Option<u64>,
    /// The policy at its arrival, or when its session was served last.
    policy: Arc<Policy>,
    /// The policy's number, or an earlier one.
    policy_number: u64,
    /// Its place, until the runtime takes the place over ([`Serve::remains`]).
    place: Option<Place>,
    /// The user and the database that the client asked for.
    request: Option<Box<StartupRequest>>,
}

impl Connection {
    /// A connection from which nothing has been read.
    pub fn new(shared: Arc<Shared>, place: Place) -> Self {
        // In this order: if a policy comes in between, the session notices it once more.
        let policy_number = shared.policy_number();
        let policy = shared.policy();
        Self {
            shared,
            phase: Phase::Fresh,
            tls: None,
            limit: None,
            ends: None,
            policy,
            policy_number,
            place: Some(place),
            request: None,
        }
    }

    fn serve_all(&mut self, io: &mut SessionIo<'_>) -> Result<Flow, Fault> {
        loop {
            if self.policy_number != self.shared.policy_number() {
                self.reload();
            }
            if let Phase::Live(live) = &mut self.phase {
                let mut wire = Wire::new(io, self.tls.as_deref_mut())?;
                let flow = live.serve(&mut wire);
                wire.finish()?;
                return flow;
            }
            let was_admitted = matches!(self.phase, Phase::Admitted);
            if !self.log_in(io)? {
                return Ok(if matches!(self.phase, Phase::Over) { Flow::Close } else { Flow::Continue });
            }
            if !was_admitted && matches!(self.phase, Phase::Admitted) {
                return Ok(Flow::Enter { reserve: self.needs_reserve() });
            }
        }
    }

    /// Whether the session goes to the reserve worker: a session of `postgres` that begins while
    /// SQL holds every core. It can look for the statements that hold them, and cancel those.
    fn needs_reserve(&self) -> bool {
        runtime::watchdog::all_held()
            && self.request.as_ref().is_some_and(|asked| self.shared.database.has_reserve(&asked.user))
    }

    /// Gives the session the settings of a new policy. A client that is not in yet keeps the former
    /// policy.
    #[cold]
    fn reload(&mut self) {
        if let Phase::Live(live) = &mut self.phase {
            self.policy_number = self.shared.policy_number();
            self.policy = self.shared.policy();
            live.session.reload_settings(&self.policy.settings);
        }
    }

    /// Starts the limit for the time in which the client sends nothing.
    fn start_limit(&mut self, io: &SessionIo<'_>) {
        let limit = match &mut self.phase {
            Phase::Fresh | Phase::Proving(_) | Phase::Admitted => {
                if let Some(place) = &mut self.place {
                    place.wait_if_refused(io.interrupt());
                }
                Some(self.policy.login_limit)
            }
            Phase::Live(live) => {
                let limit = live.session.idle_limit();
                if limit.is_some() && std::mem::take(&mut live.heard) {
                    self.ends = None;
                }
                limit
            }
            Phase::Over => None,
        };
        if let Some(limit) = limit {
            // One limit for a whole login, or for a whole message: a client that sends a byte now
            // and then gets no more time.
            let now = runtime::time::now();
            let ends = *self.ends.get_or_insert(now + limit.as_nanos() as u64);
            let left = Duration::from_nanos(ends.saturating_sub(now));
            let interrupt = Arc::clone(io.interrupt());
            self.limit = Some(runtime::timer::after(left, move || interrupt.raise(Reason::IdleTimeout)));
        }
    }

    fn in_transaction(&self) -> bool {
        matches!(&self.phase, Phase::Live(live) if live.session.status() != b'I')
    }

    /// The reason why the session must end, if the request came while none of its statements ran. A
    /// cancel request that comes too late for its statement is forgotten.
    fn told_while_idle(&self, io: &SessionIo<'_>) -> Option<SqlError> {
        while let Some(reason) = io.interrupt().take() {
            let refusal = self.place.as_ref().and_then(|place| place.check().err());
            if let (Some(refusal), Reason::Terminate | Reason::IdleTimeout) = (refusal, reason) {
                return Some(refusal);
            }
            let (code, message) = match reason {
                Reason::Cancel | Reason::StatementTimeout | Reason::LockTimeout => continue,
                // `Live::refuses` handles a message that has not come completely. Only the end of
                // the session frees cursors and prepared statements.
                Reason::Memory if !self.holds_much_idle(io) => continue,
                Reason::Memory => (
                    SqlState::OUT_OF_MEMORY,
                    "terminating idle connection, which holds memory the server needs",
                ),
                // Its transaction has ended meanwhile.
                Reason::TransactionTimeout | Reason::RetainedLog if !self.in_transaction() => continue,
                Reason::Shutdown | Reason::Terminate | Reason::TransactionTimeout | Reason::RetainedLog => {
                    return Some(SqlError::interrupted(Interrupted(reason)));
                }
                Reason::IdleTimeout => match &self.phase {
                    Phase::Live(live) if live.session.status() == b'I' => {
                        (SqlState::IDLE_SESSION_TIMEOUT, "terminating connection due to idle-session timeout")
                    }
                    Phase::Live(_) => (
                        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                        "terminating connection due to idle-in-transaction timeout",
                    ),
                    _ => (SqlState::QUERY_CANCELED, "canceling authentication due to timeout"),
                },
            };
            return Some(SqlError::new(code, message));
        }
        None
    }

    /// Sends the client the reason why its session ends, and logs it.
    fn say_last(&mut self, io: &mut SessionIo<'_>, fault: &SqlError) {
        let session = match &self.phase {
            Phase::Live(live) => live.session.id(),
            _ => 0,
        };
        if self.place.as_ref().is_some_and(Place::may_linger) {
            io.linger();
        }
        record::fatal(&Client { peer: io.peer(), request: self.request.as_deref(), session }, fault);
        if let Ok(mut wire) = Wire::new(io, self.tls.as_deref_mut()) {
            encode::error(wire.output(), Severity::Fatal, fault);
            // The session is over in any case.
            let _ = wire.finish();
        }
    }
}

impl Serve for Connection {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        if let Some(limit) = self.limit.take() {
            runtime::timer::cancel(limit);
        }
        let served = match self.told_while_idle(io) {
            Some(fault) => Err(Fault::Fatal(fault)),
            None => self.serve_all(io),
        };
        match served {
            Ok(Flow::Continue) => {
                self.start_limit(io);
                return Next::Wait;
            }
            Ok(Flow::Enter { reserve: false }) => return Next::Enter,
            Ok(Flow::Enter { reserve: true }) => return Next::EnterReserve,
            Ok(Flow::Close) | Err(Fault::Broken) => {}
            Err(Fault::Tls(fault)) => record::tls_failed(io.peer(), &fault),
            Err(Fault::Sql(fault) | Fault::Fatal(fault)) => self.say_last(io, &fault),
        }
        if let Some(tls) = &mut self.tls {
            tls.end(io.output());
        }
        Next::Close
    }

    fn is_entering(&self) -> bool {
        true
    }

    fn prefetch(&self) {
        if let Phase::Live(live) = &self.phase {
            live.session.prefetch();
        }
    }

    fn may_leave_core(&self) -> bool {
        matches!(&self.phase, Phase::Live(live) if live.session.may_leave_core())
    }

    fn leave_core(&mut self) {
        // It is set anew where the session comes to: `ends` keeps its time.
        if let Some(limit) = self.limit.take() {
            runtime::timer::cancel(limit);
        }
    }

    fn enter_core(&mut self) {
        if let Phase::Live(live) = &mut self.phase {
            live.session.enter_core();
        }
    }

    fn closed(&mut self) {
        if let Some(limit) = self.limit.take() {
            runtime::timer::cancel(limit);
        }
        if let Some(place) = &mut self.place {
            place.unname();
        }
        // Dropping a live session rolls its transaction back.
        self.phase = Phase::Over;
        if let Some(place) = &mut self.place {
            place.end(&self.shared.limits());
        }
    }

    fn remains(&mut self) -> Option<Box<dyn Send>> {
        Some(Box::new(self.place.take()?))
    }
}

impl Live {
    fn serve(&mut self, wire: &mut Wire<'_, '_>) -> Result<Flow, Fault> {
        loop {
            if self.refused.is_some() && !self.pass_refused(wire) {
                return Ok(Flow::Continue);
            }
            let frame = decode::frame(wire.input()).map_err(|v| Fault::Fatal(v.error()))?;
            let Frame::Message { kind, total } = frame else {
                if wire.input().len() < 5 || !self.refuses(wire) {
                    return Ok(Flow::Continue);
                }
                continue;
            };
            self.heard = true;
            let done = match kind {
                b'X' => return Ok(Flow::Close),
                b'S' => self.sync(wire, total),
                // Left over from a COPY that failed; nothing reads it.
                b'd' | b'c' | b'f' => pass_over(wire, total),
                b'p' => Err(Fault::Fatal(Violation::UnknownType(kind).error())),
                // Queries are skipped too, as in PostgreSQL.
                _ if self.skipping => pass_over(wire, total),
                b'Q' => self.query(wire, total),
                b'F' => self.function_call(wire, total),
                _ => self.extended(wire, kind, total),
            };
            match done {
                Ok(()) => {}
                Err(Fault::Sql(fault)) => self.tell(wire, &fault),
                Err(other) => return Err(other),
            }
            wire.flush_if_large()?;
            // A client that sends many statements at once lets others run as often as one that
            // sends a long one.
            if matches!(kind, b'Q' | b'S' | b'P') && !wire.input().is_empty() {
                runtime::fiber::safe_point();
            }
        }
    }

    /// Sends the client the error of its statement. Logs it too if the operator has to act.
    #[cold]
    fn tell(&self, wire: &mut Wire<'_, '_>, fault: &SqlError) {
        if self.session.logs_errors() || record::concerns_operator(fault.code) {
            record::failure(wire.peer(), &self.session, fault);
        }
        encode::error(wire.output(), Severity::Error, fault);
    }

    fn query(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        // The text is copied out of the message.
        let read = room::ask(total).and_then(|()| {
            runtime::work::append(&mut text, message::query(&wire.input()[5..total])?);
            Ok(())
        });
        wire.consume(total);
        let outcome = match read {
            Ok(()) => self.run_query(wire, &text),
            Err(fault) => {
                self.session.fail();
                Err(fault)
            }
        };
        if text.capacity() <= KEPT_TEXT {
            self.text = text;
        }
        match outcome {
            Ok(()) => {}
            Err(Fault::Sql(fault)) => self.tell(wire, &fault),
            Err(other) => return Err(other),
        }
        self.ready(wire);
        Ok(())
    }

    /// Ends a round: sends changes of the settings that the client follows, then ReadyForQuery.
    fn ready(&mut self, wire: &mut Wire<'_, '_>) {
        for (name, value) in self.session.changed_settings() {
            encode::parameter_status(wire.output(), name, &value);
        }
        encode::ready(wire.output(), self.session.status());
    }

    fn run_query(&mut self, wire: &mut Wire<'_, '_>, text: &str) -> Result<(), Fault> {
        let mut client = WireClient::new(wire, &[], true);
        let outcome = self.session.simple_query(text, &mut client);
        finish(client, outcome)
    }

    fn sync(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        wire.consume(total);
        self.skipping = false;
        match self.session.sync().map_err(Fault::from) {
            Ok(()) => {}
            Err(Fault::Sql(fault)) => self.tell(wire, &fault),
            Err(other) => return Err(other),
        }
        self.ready(wire);
        Ok(())
    }

    fn function_call(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        wire.consume(total);
        self.session.fail();
        self.tell(wire, &SqlError::unsupported("the function call protocol"));
        self.ready(wire);
        Ok(())
    }

    /// Handles a message of the extended protocol. If it fails, everything up to the next Sync is
    /// skipped.
    fn extended(&mut self, wire: &mut Wire<'_, '_>, kind: u8, total: usize) -> Result<(), Fault> {
        let outcome = match kind {
            b'P' => self.parse(wire, total),
            b'B' => self.bind(wire, total),
            b'D' => self.describe(wire, total),
            b'E' => self.execute(wire, total),
            b'C' => self.close(wire, total),
            _ => {
                wire.consume(total);
                wire.flush().map_err(Fault::from)
            }
        };
        if matches!(outcome, Err(Fault::Sql(_))) {
            self.skipping = true;
            self.session.fail();
        }
        outcome
    }

    fn parse(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        let outcome = (|| {
            let Parse { name, text, types } = message::parse(&wire.input()[5..total])?;
            Ok(self.session.parse(name, text, &types)?)
        })();
        wire.consume(total);
        if outcome.is_ok() {
            encode::bare(wire.output(), b'1');
        }
        outcome
    }

    fn bind(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        let outcome = (|| {
            // The parameters are copied out of the message and then read into values.
            room::ask(2 * total)?;
            let mut bind = Bind::default();
            message::bind(&wire.input()[5..total], &mut bind)?;
            let Bind { portal, statement, formats, values, results } = &bind;
            Ok(self.session.bind(portal, statement, values, formats, results)?)
        })();
        wire.consume(total);
        if outcome.is_ok() {
            encode::bare(wire.output(), b'2');
        }
        outcome
    }

    fn describe(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        // The reply borrows the wire, so the name is copied out of the message.
        let read = message::describe(&wire.input()[5..total]).map(|target| match target {
            Target::Statement(name) => (true, name.to_owned()),
            Target::Portal(name) => (false, name.to_owned()),
        });
        wire.consume(total);
        let (is_statement, name) = read?;
        if is_statement {
            let (types, columns) = self.session.describe_statement(&name)?;
            encode::parameter_description(wire.output(), &types);
            match columns {
                Some(columns) => encode::row_description(wire.output(), &columns, &[]),
                None => encode::bare(wire.output(), b'n'),
            }
        } else {
            match self.session.describe_portal(&name)? {
                Some((columns, formats)) => encode::row_description(wire.output(), &columns, formats),
                None => encode::bare(wire.output(), b'n'),
            }
        }
        Ok(())
    }

    fn execute(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        let mut portal: SmallVec<[u8; 64]> = SmallVec::new();
        let read = message::execute(&wire.input()[5..total]).map(|execute| {
            portal.extend_from_slice(execute.portal.as_bytes());
            execute.limit
        });
        wire.consume(total);
        let limit = read?;
        // The decoder has checked that it is UTF-8.
        let portal = std::str::from_utf8(&portal).unwrap_or("");
        let formats: SmallVec<[i16; 16]> = SmallVec::from_slice(self.session.portal_formats(portal));
        let mut client = WireClient::new(wire, &formats, false);
        let outcome = self.session.execute(portal, limit, &mut client);
        let suspended = matches!(outcome, Ok(Executed::Suspended));
        finish(client, outcome.map(|_| ()))?;
        if suspended {
            encode::bare(wire.output(), b's');
        }
        Ok(())
    }

    fn close(&mut self, wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
        let outcome = (|| {
            match message::close(&wire.input()[5..total])? {
                Target::Statement(name) => self.session.close_statement(name),
                Target::Portal(name) => self.session.close_portal(name),
            }
            Ok(())
        })();
        wire.consume(total);
        if outcome.is_ok() {
            encode::bare(wire.output(), b'3');
        }
        outcome
    }
}

/// Drops a message that has no effect.
fn pass_over(wire: &mut Wire<'_, '_>, total: usize) -> Result<(), Fault> {
    wire.consume(total);
    Ok(())
}

fn finish(client: WireClient<'_, '_, '_>, outcome: Result<(), SqlError>) -> Result<(), Fault> {
    match outcome {
        Err(_) if client.broken => Err(Fault::Broken),
        other => Ok(other?),
    }
}
