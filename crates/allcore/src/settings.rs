//! The settings of `allcore serve`: from the command line, else the environment, else a file, else their defaults.

mod file;
mod reload;

use crate::units::{Bytes, Span};
use clap::{Args, ValueEnum};
pub use reload::Change;
use std::path::PathBuf;

/// How clients prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthKind {
    /// Every client is believed.
    Trust,
    /// A password, proved by SCRAM-SHA-256 (set one with `allcore passwd`).
    Scram,
}

/// How files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileIoKind {
    /// io_uring where the kernel grants it, threads elsewhere.
    Auto,
    /// io_uring, or refuse to start.
    #[value(name = "io_uring")]
    IoUring,
    /// A small pool of I/O threads.
    Threads,
}

/// Which clients must use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TlsKind {
    /// Clients choose.
    Offered,
    /// All clients that connect over TCP.
    Required,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Time, level, message.
    Text,
    /// One JSON object a line.
    Json,
}

/// The least urgent lines the log takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Failures that the operator has to mend.
    Error,
    /// And what was refused, or may become a failure.
    Warn,
    /// And what the server does.
    Info,
    /// And what is of use to those who look for faults in it.
    Debug,
}

/// Everything `allcore serve` can be told.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub struct ServeSettings {
    /// Folder of the database; created if it is empty or not there
    #[arg(long, value_name = "DIR", env = "ALLCORE_DATA")]
    pub data: Option<PathBuf>,
    /// Address to accept TCP connections on; may be given more than once; 'none' for no TCP [default: 127.0.0.1:5432]
    #[arg(long, value_name = "HOST:PORT", env = "ALLCORE_LISTEN", value_delimiter = ',')]
    pub listen: Vec<String>,
    /// Folder for the Unix socket .s.PGSQL.PORT [default: none]
    #[arg(long, value_name = "DIR", env = "ALLCORE_SOCKET_DIR")]
    pub socket_dir: Option<PathBuf>,
    /// Cores to use, each with one pinned worker [default: all the process may use]
    #[arg(long, value_name = "N", env = "ALLCORE_CORES", value_parser = at_least_one)]
    pub cores: Option<usize>,
    /// Memory for the buffer pool, as in 2GiB [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", env = "ALLCORE_BUFFERS")]
    pub buffers: Option<Bytes>,
    /// Memory that all sessions may take together beside the buffers, as in 4GiB; past it statements fail with 53200
    /// [default: three quarters of what the buffers leave]
    #[arg(long, value_name = "SIZE", env = "ALLCORE_MEMORY")]
    pub memory: Option<Bytes>,
    /// How clients prove who they are [default: trust]
    #[arg(long, value_name = "KIND", env = "ALLCORE_AUTH")]
    pub auth: Option<AuthKind>,
    /// With '--auth trust': believe clients of other machines, too
    #[arg(long, value_name = "BOOL", env = "ALLCORE_I_KNOW", num_args = 0..=1, require_equals = true,
        default_missing_value = "true")]
    pub i_know: Option<bool>,
    /// How files are read and written [default: auto]
    #[arg(long, value_name = "KIND", env = "ALLCORE_FILE_IO")]
    pub file_io: Option<FileIoKind>,
    /// Certificate chain (PEM) to offer TLS with; needs --tls-key
    #[arg(long, value_name = "FILE", env = "ALLCORE_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate, readable by its owner alone
    #[arg(long, value_name = "FILE", env = "ALLCORE_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Clients that have to use TLS; Unix sockets need none [default: offered]
    #[arg(long, value_name = "KIND", env = "ALLCORE_TLS")]
    pub tls: Option<TlsKind>,
    /// Sessions at one time; the next one is refused with 53300 [default: 5000]
    #[arg(long, value_name = "N", env = "ALLCORE_MAX_CONNECTIONS", value_parser = at_least_one)]
    pub max_connections: Option<usize>,
    /// Of these, those that only superusers get [default: 3]
    #[arg(long, value_name = "N", env = "ALLCORE_SUPERUSER_RESERVED_CONNECTIONS")]
    pub superuser_reserved_connections: Option<usize>,
    /// Connections that have not logged in yet, at one time [default: as --max-connections, at least 128]
    #[arg(long, value_name = "N", env = "ALLCORE_MAX_LOGINS", value_parser = at_least_one)]
    pub max_logins: Option<usize>,
    /// Time a client has to log in, as in 10s [default: 60s]
    #[arg(long, value_name = "TIME", env = "ALLCORE_AUTHENTICATION_TIMEOUT")]
    pub authentication_timeout: Option<Span>,
    /// Log that an open transaction may keep from being let go, as in 20GiB; its session is ended when it keeps more
    /// [default: half of the disk]
    #[arg(long, value_name = "SIZE", env = "ALLCORE_MAX_RETAINED_LOG")]
    pub max_retained_log: Option<Bytes>,
    /// How log lines are written [default: text]
    #[arg(long, value_name = "KIND", env = "ALLCORE_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
    /// The least urgent lines the log takes [default: info]
    #[arg(long, value_name = "LEVEL", env = "ALLCORE_LOG_LEVEL")]
    pub log_level: Option<LogLevel>,
    /// A setting that sessions begin with, as in statement_timeout=30s; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", env = "ALLCORE_SET", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Start although the log is damaged at LSN, which the refusal names, and give up what follows; a copy is kept
    #[arg(long, value_name = "LSN", value_parser = log_position)]
    pub discard_log_after: Option<u64>,
    /// File with settings, `name = value` a line, names as the long options
    #[arg(long, value_name = "FILE", env = "ALLCORE_CONFIG")]
    pub config: Option<PathBuf>,
}

/// The address TCP connections are accepted on where nothing is said.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:5432";
/// Sessions at one time where nothing is said.
pub const DEFAULT_MAX_CONNECTIONS: usize = 5000;
/// Those of them kept for superusers where nothing is said.
pub const DEFAULT_RESERVED: usize = 3;

impl ServeSettings {
    /// How clients prove who they are.
    pub fn auth(&self) -> AuthKind {
        self.auth.unwrap_or(AuthKind::Trust)
    }
}

/// A position of the log as messages name it: two hexadecimal numbers with a stroke between.
fn log_position(text: &str) -> Result<u64, String> {
    let part = |text: &str| u32::from_str_radix(text, 16).ok().map(u64::from);
    text.split_once('/')
        .and_then(|(high, low)| Some(part(high)? << 32 | part(low)?))
        .ok_or_else(|| format!("'{text}' is no position of the log, as 0/1A2B3C8"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is no number of at least 1")),
        Ok(number) => Ok(number),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
