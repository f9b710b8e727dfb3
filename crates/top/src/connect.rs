//! The connection to the server, and its faults in one line each.

use std::error::Error as _;
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::clean;
use crate::options::Options;

/// Longest time for connecting to an address.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time for connecting and logging in, where PGCONNECT_TIMEOUT names none.
const LOGIN: Duration = Duration::from_secs(30);
/// Sent with the login. The server gives up a look at its views that takes longer.
const SETTINGS: &str = "-c statement_timeout=30s";

/// Errors of a server that lacks a view, or a column of one.
const ABSENT: [SqlState; 2] = [SqlState::UNDEFINED_TABLE, SqlState::UNDEFINED_COLUMN];

/// Rows of one statement as text; `None` for NULL.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// The server, and a connection while there is one.
pub(crate) struct Connection {
    config: Config,
    client: Option<Client>,
    /// Longest time for connecting and logging in.
    login: Duration,
    /// A login that has taken longer. The next attempt waits for it, so that no server gets several
    /// at a time.
    late: Option<Receiver<Result<Client, postgres::Error>>>,
    /// The server as messages name it.
    pub(crate) place: String,
    /// The number of the connection, from 1. Counts of different connections may be those of
    /// different servers.
    pub(crate) number: u64,
}

impl Connection {
    /// Logs in. Asks for a password on a terminal if the server wants one and the environment has
    /// none (PGPASSWORD).
    pub(crate) fn open(options: &Options) -> Result<Self, String> {
        let Options { host, port, user, dbname, .. } = options;
        let mut config = Config::new();
        // The library takes a host that begins with a slash as the folder of a socket.
        config.host(host).port(*port).user(user).dbname(dbname).options(SETTINGS);
        config.application_name("allcore top").connect_timeout(CONNECT);
        let separator = if host.starts_with('/') { "/.s.PGSQL." } else { ":" };
        let place = clean::line(&format!("{host}{separator}{port}"));
        let password = std::env::var("PGPASSWORD").ok();
        if let Some(password) = &password {
            config.password(password);
        }
        let seconds = std::env::var("PGCONNECT_TIMEOUT").ok().and_then(|text| text.parse().ok());
        let login = seconds.filter(|seconds| *seconds > 0).map_or(LOGIN, Duration::from_secs);
        let mut connection = Self { config, client: None, login, late: None, place, number: 0 };
        match connection.connect() {
            Err(Refusal::Told(fault))
                if password.is_none() && wants_password(&fault) && std::io::stdin().is_terminal() =>
            {
                let asked = rpassword::prompt_password(format!("Password for {}: ", clean::line(user)));
                connection.config.password(asked.map_err(|error| format!("cannot ask: {error}"))?);
                connection.connect().map_err(|fault| connection.refusal(&fault))?;
            }
            connected => connected.map_err(|fault| connection.refusal(&fault))?,
        }
        Ok(connection)
    }

    /// Runs statements in one message and returns the rows of each. Connects first where the
    /// connection is gone.
    pub(crate) fn run(&mut self, statements: &str) -> Result<Vec<Rows>, String> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.connect().map_err(|fault| self.refusal(&fault))?;
        }
        let Some(client) = &mut self.client else { return Err("there is no connection".to_owned()) };
        match client.simple_query(statements) {
            Ok(messages) => Ok(split(messages)),
            Err(fault) => {
                let is_lost = client.is_closed();
                let why = reason(&fault);
                if fault.code().is_some_and(|code| ABSENT.contains(code)) {
                    return Err(format!("{} is no Allcore server of this version: {why}", self.place));
                }
                if is_lost {
                    self.client = None;
                    return Err(format!("the connection to {} is lost: {why}", self.place));
                }
                Err(why)
            }
        }
    }

    fn connect(&mut self) -> Result<(), Refusal> {
        self.client = None;
        let result = match self.late.take() {
            Some(late) => late,
            None => {
                let config = self.config.clone();
                beside(move || config.connect(NoTls)).map_err(Refusal::NoThread)?
            }
        };
        match result.recv_timeout(self.login) {
            Ok(client) => self.client = Some(client.map_err(Refusal::Told)?),
            Err(RecvTimeoutError::Timeout) => {
                self.late = Some(result);
                return Err(Refusal::Silent);
            }
            Err(RecvTimeoutError::Disconnected) => return Err(Refusal::Ended),
        }
        self.number += 1;
        Ok(())
    }

    fn refusal(&self, fault: &Refusal) -> String {
        let why = match fault {
            Refusal::Told(fault) if wants_password(fault) => {
                "the server asks for a password: set PGPASSWORD, or run this on a terminal".to_owned()
            }
            Refusal::Told(fault) if is_foreign(fault) => {
                format!("the server does not speak PostgreSQL's protocol: {}", reason(fault))
            }
            Refusal::Told(fault) if fault.is_closed() => {
                "the server closed the connection during the login".to_owned()
            }
            Refusal::Told(fault) => reason(fault),
            Refusal::Silent => format!("the server says nothing for {} s", self.login.as_secs()),
            Refusal::Ended => "the thread that connects has ended".to_owned(),
            Refusal::NoThread(error) => format!("no thread can be started: {error}"),
        };
        format!("cannot connect to {}: {why}", self.place)
    }
}

/// Why there is no connection.
enum Refusal {
    /// The server's message, or that of the system.
    Told(postgres::Error),
    /// The server accepts the connection and says nothing.
    Silent,
    /// The thread that connects has panicked.
    Ended,
    /// There is no thread that could connect.
    NoThread(std::io::Error),
}

/// Runs `work` on a thread of its own. Its result can be waited for.
fn beside<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> std::io::Result<Receiver<R>> {
    let (sender, result) = channel();
    // A receiver that is gone does not want the result.
    Builder::new().name("login".to_owned()).spawn(move || _ = sender.send(work()))?;
    Ok(result)
}

fn wants_password(fault: &postgres::Error) -> bool {
    let mut text = fault.to_string();
    let mut cause = fault.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text.contains("password missing")
}

/// Whether the server's bytes are no messages of the protocol.
fn is_foreign(fault: &postgres::Error) -> bool {
    let text = format!("{fault}: {}", reason(fault));
    ["unexpected message from server", "error parsing response", "bytes remaining on stream"]
        .iter()
        .any(|words| text.contains(words))
}

/// The server's message with its SQLSTATE, or the deepest cause.
fn reason(fault: &postgres::Error) -> String {
    if let Some(told) = fault.as_db_error() {
        return clean::line(&format!("{} ({})", told.message(), told.code().code()));
    }
    let mut deepest: &dyn std::error::Error = fault;
    while let Some(inner) = deepest.source() {
        deepest = inner;
    }
    clean::line(&deepest.to_string())
}

fn split(messages: Vec<SimpleQueryMessage>) -> Vec<Rows> {
    let (mut all, mut rows) = (Vec::new(), Rows::new());
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect());
            }
            SimpleQueryMessage::CommandComplete(_) => all.push(std::mem::take(&mut rows)),
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_that_takes_too_long_is_waited_for_again() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = Config::new();
        config.host("127.0.0.1").port(silent.local_addr().unwrap().port()).user("u");
        let login = Duration::from_millis(20);
        let mut connection =
            Connection { config, client: None, login, late: None, place: String::new(), number: 0 };
        for _ in 0..3 {
            assert!(matches!(connection.connect(), Err(Refusal::Silent)));
        }
        silent.set_nonblocking(true).unwrap();
        assert!(silent.accept().is_ok(), "the first attempt has connected");
        assert!(silent.accept().is_err(), "and no other");
        let panics = beside(|| -> () { panic!("expected") }).unwrap();
        assert_eq!(
            panics.recv_timeout(Duration::from_secs(60)),
            Err::<(), _>(RecvTimeoutError::Disconnected)
        );
    }
}
