//! The connection to the server, and its faults in one line each.

use std::error::Error as _;
use std::io::IsTerminal;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use postgres::{Client, Config, NoTls, SimpleQueryMessage};

use crate::clean;
use crate::options::Options;

/// Longest time for connecting to an address.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time for connecting and logging in, where PGCONNECT_TIMEOUT names none.
const LOGIN: Duration = Duration::from_secs(30);
/// Sent with the login. The server gives up a look at its views that takes longer.
const SETTINGS: &str = "-c statement_timeout=30s";

/// Rows of one statement as text; `None` for NULL.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// The server, and a connection while there is one.
pub(crate) struct Connection {
    config: Config,
    client: Option<Client>,
    /// Longest time for connecting and logging in.
    login: Duration,
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
        let mut connection = Self { config, client: None, login, place, number: 0 };
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
        let config = self.config.clone();
        let client = within(self.login, move || config.connect(NoTls)).ok_or(Refusal::Silent)?;
        self.client = Some(client.map_err(Refusal::Told)?);
        self.number += 1;
        Ok(())
    }

    fn refusal(&self, fault: &Refusal) -> String {
        let why = match fault {
            Refusal::Told(fault) => reason(fault),
            Refusal::Silent => format!("the server says nothing for {} s", self.login.as_secs()),
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
}

/// Runs `work` on a thread of its own, and waits so long for its result. `None` where it takes
/// longer: the thread is left alone then. A panic in it is no result either.
fn within<R: Send + 'static>(limit: Duration, work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    let (sender, result) = channel();
    // A receiver that waits no longer does not want the result.
    thread::spawn(move || _ = sender.send(work()));
    result.recv_timeout(limit).ok()
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
    fn work_that_takes_too_long_has_no_result() {
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let (hold, held) = channel::<()>();
        assert_eq!(within(Duration::from_millis(20), move || held.recv().is_err()), None);
        drop(hold);
    }
}
