//! A control connection: it makes and fills tables, and asks the server for its settings and rows.
//! It is never on the load loop, so it may allocate and wait.
//!
//! Statements and replies are text on both dialects. Rows are loaded by the fastest way that every
//! server of the dialect has: COPY on PostgreSQL, multi-row INSERTs on MySQL.

mod bulk;
mod fault;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use sync::atomic::{AtomicBool, Ordering};

use crate::arm::{Address, Dialect, Target};
use crate::client::Params;

pub use bulk::{Progress, in_parallel};
pub use fault::Fault;

/// Time limit for a server to accept a connection, and again for it to admit the connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A row of a result: its values as text, `None` for a NULL.
pub type Row = Vec<Option<String>>;

/// A connection for single statements and for loading. It ends when it is dropped.
pub struct Control(Link);

enum Link {
    Postgres(Box<postgres::Client>),
    Mysql(Box<mysql::Conn>),
}

impl std::fmt::Debug for Control {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Control({:?})", self.dialect())
    }
}

impl Control {
    pub fn connect(to: &Target) -> Result<Self, Fault> {
        Self::connect_to(to, &to.database)
    }

    /// Connects to another database of the target's server: one that certainly exists, to create
    /// the target's own.
    pub fn connect_to(to: &Target, database: &str) -> Result<Self, Fault> {
        Self::connect_within(to, database, 2 * CONNECT)
    }

    fn connect_within(to: &Target, database: &str, limit: Duration) -> Result<Self, Fault> {
        let (sender, receiver) = channel();
        let (target, name) = (to.clone(), database.to_owned());
        // A thread connects, and is abandoned at the time limit. Neither library limits the wait
        // for a server that accepts and then stays silent, such as one that speaks another
        // protocol.
        thread::spawn(move || sender.send(Self::open(&target, &name)));
        let silent = || Fault::broken(&format!("it does not answer as a {:?} server does", to.dialect));
        let opened = receiver.recv_timeout(limit).unwrap_or_else(|_| Err(silent()));
        opened.map_err(|fault| fault.at(to, database))
    }

    fn open(to: &Target, database: &str) -> Result<Self, Fault> {
        Ok(Self(match to.dialect {
            Dialect::Postgres => {
                Link::Postgres(Box::new(postgres_config(to, database).connect(postgres::NoTls)?))
            }
            Dialect::Mysql => Link::Mysql(Box::new(mysql::Conn::new(mysql_options(to, database))?)),
        }))
    }

    pub fn dialect(&self) -> Dialect {
        match self.0 {
            Link::Postgres(_) => Dialect::Postgres,
            Link::Mysql(_) => Dialect::Mysql,
        }
    }

    /// Runs one statement; returns the number of rows it changed.
    pub fn execute(&mut self, sql: &str) -> Result<u64, Fault> {
        self.run(sql).map(|(_, changed)| changed).map_err(|fault| fault.in_statement(sql))
    }

    pub fn query(&mut self, sql: &str) -> Result<Vec<Row>, Fault> {
        self.run(sql).map(|(rows, _)| rows).map_err(|fault| fault.in_statement(sql))
    }

    /// The rows of a statement's result, and the number of rows it changed.
    fn run(&mut self, sql: &str) -> Result<(Vec<Row>, u64), Fault> {
        match &mut self.0 {
            Link::Postgres(client) => {
                let (mut rows, mut changed) = (Vec::new(), 0);
                for message in client.simple_query(sql)? {
                    match message {
                        postgres::SimpleQueryMessage::Row(row) => {
                            rows.push((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect());
                        }
                        postgres::SimpleQueryMessage::CommandComplete(count) => changed += count,
                        _ => {}
                    }
                }
                Ok((rows, changed))
            }
            Link::Mysql(conn) => {
                let rows: Vec<mysql::Row> = conn.query(sql)?;
                let rows = rows.into_iter().map(|row| row.unwrap().into_iter().map(as_text).collect());
                Ok((rows.collect(), conn.affected_rows()))
            }
        }
    }

    /// The first value of a statement's result; `None` if it has no rows or the value is NULL.
    pub fn value(&mut self, sql: &str) -> Result<Option<String>, Fault> {
        let first = self.query(sql)?.into_iter().next();
        Ok(first.and_then(|row| row.into_iter().next()).flatten())
    }

    /// Loads rows with all columns of a table. PostgreSQL loads them in one transaction, MySQL in
    /// many. `next` fills the (empty) row and returns true, or returns false at the end. Numbers
    /// are [`Params::int`] or verbatim literals; everything else is text, including dates and
    /// times. Returns the number of rows.
    pub fn load(
        &mut self,
        table: &str,
        progress: &Progress,
        mut next: impl FnMut(&mut Params) -> bool,
    ) -> Result<u64, Fault> {
        match &mut self.0 {
            Link::Postgres(client) => bulk::copy(client, table, progress, &mut next),
            Link::Mysql(conn) => bulk::insert(conn, table, progress, &mut next),
        }
    }
}

/// Runs `work` on a thread of its own. Returns `None` once `stop` is set, and abandons the thread:
/// neither library ends the wait for a server's answer.
pub(crate) fn unless_stopped<T: Send + 'static>(
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let working = thread::spawn(work);
    while !working.is_finished() {
        // Relaxed: the flag publishes nothing else.
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        thread::sleep(Duration::from_millis(20));
    }
    Some(working.join().expect("a control connection does not panic"))
}

fn postgres_config(to: &Target, database: &str) -> postgres::Config {
    let mut config = postgres::Config::new();
    config.user(&to.user).dbname(database).application_name("allcore bench").connect_timeout(CONNECT);
    if let Some(password) = &to.password {
        config.password(password);
    }
    let (host, port) = to.address.libpq();
    // This library, too, takes a host that begins with a slash as a folder.
    config.host(&host).port(port);
    config
}

fn mysql_options(to: &Target, database: &str) -> mysql::Opts {
    let base = mysql::OptsBuilder::new()
        .user(Some(&to.user))
        .pass(to.password.as_deref())
        .db_name(Some(database).filter(|name| !name.is_empty()))
        .tcp_connect_timeout(Some(CONNECT))
        .init(vec!["SET autocommit = 1"])
        // Only the way that the URL asks for.
        .prefer_socket(false);
    let built = match &to.address {
        Address::Tcp(host, port) => base.ip_or_hostname(Some(host)).tcp_port(*port),
        Address::Unix(socket) => base.socket(socket.to_str()),
    };
    built.into()
}

/// A value of a text result; MySQL sends bytes there, or NULL.
fn as_text(value: mysql::Value) -> Option<String> {
    match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        other => Some(other.as_sql(true)),
    }
}

#[cfg(test)]
mod tests;
