//! The settings of `allcore serve`: from the command line, else the environment, else a file, else
//! the defaults.
//!
//! What must hold:
//!
//! 1. `None`, or an empty list, means that nobody has named the setting. Defaults are applied where
//!    a setting is used. A default stored here would win over the file.
//! 2. A new setting is read in `file` and stands in `reload`: among those that count at the start,
//!    or among those that change at once.
//! 3. `config` and `discard_log_after` are not read from the file. The second one concerns a single
//!    start.
//! 4. Session settings are a list in which the last entry of a name counts.

mod file;
mod reload;

use crate::units::{Bytes, Span};
use clap::{Args, ValueEnum};
pub use reload::Change;
use std::path::PathBuf;
use std::str::FromStr;

/// How clients prove their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthKind {
    /// No proof: every client is let in.
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

/// Frames that a core claims at a time when it looks for one to reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepBatch {
    /// As many as suit the NUMA nodes, the cores and the buffers.
    Auto,
    /// So many, or fewer: all cores together claim at most half of the buffers.
    Frames(usize),
}

impl FromStr for SweepBatch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => at_least_one(text).map(Self::Frames).map_err(|fault| format!("{fault}, nor 'auto'")),
        }
    }
}

/// Whether the buffers lie in huge pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HugePagesKind {
    /// Pages of 1 GiB or 2 MiB that the system has reserved, else transparent ones, else none.
    Try,
    /// Pages of 1 GiB or 2 MiB that the system has reserved, or refuse to start.
    On,
    /// Ordinary pages.
    Off,
}

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is done.
    On,
    /// It is not.
    Off,
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

/// The least urgent lines in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Failures on which the operator has to act.
    Error,
    /// Also refusals, and events that may become failures.
    Warn,
    /// Also the server's actions.
    Info,
    /// Also details for those who search for faults in the server.
    Debug,
}

/// The settings of `allcore serve`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Args)]
pub struct ServeSettings {
    /// Folder of the database; the server makes it if it is empty or absent
    #[arg(long, value_name = "DIR", env = "ALLCORE_DATA")]
    pub data: Option<PathBuf>,
    /// Address for TCP connections; may be given more than once; 'none' for no TCP [default:
    /// 127.0.0.1:5432]
    #[arg(long, value_name = "HOST:PORT", env = "ALLCORE_LISTEN", value_delimiter = ',')]
    pub listen: Vec<String>,
    /// Folder for the Unix socket .s.PGSQL.PORT [default: none]
    #[arg(long, value_name = "DIR", env = "ALLCORE_SOCKET_DIR")]
    pub socket_dir: Option<PathBuf>,
    /// Cores to use, each with one pinned worker [default: all the process may use]
    #[arg(long, value_name = "N", env = "ALLCORE_CORES", value_parser = at_least_one)]
    pub cores: Option<usize>,
    /// NUMA node to run on, by the kernel's number: cores, memory and log; so that several servers
    /// share a machine [default: all nodes]
    #[arg(long, value_name = "N", env = "ALLCORE_NODE", value_parser = node)]
    pub node: Option<usize>,
    /// Memory for the buffer pool, as in 2GiB [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", env = "ALLCORE_BUFFERS")]
    pub buffers: Option<Bytes>,
    /// Memory that all sessions together may take beside the buffers, as in 4GiB; beyond it
    /// statements fail with 53200 [default: three quarters of what the buffers leave]
    #[arg(long, value_name = "SIZE", env = "ALLCORE_MEMORY")]
    pub memory: Option<Bytes>,
    /// How clients prove their identity [default: trust]
    #[arg(long, value_name = "KIND", env = "ALLCORE_AUTH")]
    pub auth: Option<AuthKind>,
    /// With '--auth trust': let in clients of other machines, too
    #[arg(long, value_name = "BOOL", env = "ALLCORE_I_KNOW", num_args = 0..=1, require_equals = true,
        default_missing_value = "true")]
    pub i_know: Option<bool>,
    /// How files are read and written [default: auto]
    #[arg(long, value_name = "KIND", env = "ALLCORE_FILE_IO")]
    pub file_io: Option<FileIoKind>,
    /// Frames that a core claims at a time to look for one to reuse: 'auto' or a number, at least 1
    /// [default: auto]
    #[arg(long, value_name = "N", env = "ALLCORE_CLOCK_SWEEP_BATCH")]
    pub clock_sweep_batch: Option<SweepBatch>,
    /// Huge pages for the buffers [default: try]
    #[arg(long, value_name = "KIND", env = "ALLCORE_HUGE_PAGES")]
    pub huge_pages: Option<HugePagesKind>,
    /// Touch all memory of the buffers before serving, instead of little by little
    #[arg(long, value_name = "BOOL", env = "ALLCORE_PRELOAD", num_args = 0..=1, require_equals = true,
        default_missing_value = "true")]
    pub preload: Option<bool>,
    /// Analyse tables by themselves after changes [default: on]
    #[arg(long, value_name = "KIND", env = "ALLCORE_AUTOANALYZE")]
    pub autoanalyze: Option<Switch>,
    /// Address that serves the server's counts over HTTP, at /metrics, without a login; 'none' for
    /// no address [default: none]
    #[arg(long, value_name = "HOST:PORT", env = "ALLCORE_METRICS")]
    pub metrics: Option<String>,
    /// Certificate chain (PEM) for TLS; needs --tls-key
    #[arg(long, value_name = "FILE", env = "ALLCORE_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate; only its owner may read it
    #[arg(long, value_name = "FILE", env = "ALLCORE_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Clients that must use TLS; Unix sockets need none [default: offered]
    #[arg(long, value_name = "KIND", env = "ALLCORE_TLS")]
    pub tls: Option<TlsKind>,
    /// Most sessions at one time; a further one is refused with 53300 [default: 5000]
    #[arg(long, value_name = "N", env = "ALLCORE_MAX_CONNECTIONS", value_parser = at_least_one)]
    pub max_connections: Option<usize>,
    /// Sessions among these that are reserved for the user postgres [default: 3]
    #[arg(long, value_name = "N", env = "ALLCORE_SUPERUSER_RESERVED_CONNECTIONS", value_parser = number)]
    pub superuser_reserved_connections: Option<usize>,
    /// Most connections at one time that have not logged in yet [default: as --max-connections, at
    /// least 128]
    #[arg(long, value_name = "N", env = "ALLCORE_MAX_LOGINS", value_parser = at_least_one)]
    pub max_logins: Option<usize>,
    /// Time in which a client must log in, as in 10s [default: 60s]
    #[arg(long, value_name = "TIME", env = "ALLCORE_AUTHENTICATION_TIMEOUT")]
    pub authentication_timeout: Option<Span>,
    /// Most log that an open transaction may keep, as in 20GiB; a session whose transaction keeps
    /// more is ended [default: half of the disk]
    #[arg(long, value_name = "SIZE", env = "ALLCORE_MAX_RETAINED_LOG")]
    pub max_retained_log: Option<Bytes>,
    /// How log lines are written [default: text]
    #[arg(long, value_name = "KIND", env = "ALLCORE_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
    /// The least urgent lines in the log [default: info]
    #[arg(long, value_name = "LEVEL", env = "ALLCORE_LOG_LEVEL")]
    pub log_level: Option<LogLevel>,
    /// A setting with which sessions begin, as in statement_timeout=30s; may be given more than
    /// once
    #[arg(long, value_name = "NAME=VALUE", env = "ALLCORE_SET", value_parser = assignment)]
    pub set: Vec<(String, String)>,
    /// Start although the log is damaged at LSN, which the refusal names, and give up the rest
    /// of the log; a copy is kept
    #[arg(long, value_name = "LSN", value_parser = log_position)]
    pub discard_log_after: Option<u64>,
    /// Mechanisms to run in place of the engine's own, as in pin=stock,clock-hand=published
    #[cfg(variants)]
    #[arg(long, value_name = "ROW=ARM,...", env = "ALLCORE_VARIANT")]
    pub variant: Option<variants::chosen::Choice>,
    #[cfg(not(variants))]
    #[arg(long, hide = true, value_parser = no_variants)]
    variant: Option<String>,
    /// File with settings, `name = value` a line, names as the long options
    #[arg(long, value_name = "FILE", env = "ALLCORE_CONFIG")]
    pub config: Option<PathBuf>,
}

/// The default address for TCP connections.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:5432";
/// The default number of sessions at one time.
pub const DEFAULT_MAX_CONNECTIONS: usize = 5000;
/// The default number of sessions reserved for the user `postgres`.
pub const DEFAULT_RESERVED: usize = 3;

impl ServeSettings {
    /// How clients prove their identity.
    pub fn auth(&self) -> AuthKind {
        self.auth.unwrap_or(AuthKind::Trust)
    }

    /// Sets the process's variants. Row `preload` (B14) leaves out a preload, too, and the kind of
    /// the pages stays as set. Row `pinned-memory` (B14) has ordinary pages.
    #[cfg(variants)]
    pub fn with_variants(mut self) -> Self {
        use variants::chosen::{Arm, Row, choose};
        let choice = self.variant.clone().unwrap_or_default();
        if choice.arm(Row::Preload) == Arm::Stock {
            self.preload = Some(false);
        }
        if choice.arm(Row::PinnedMemory) == Arm::Stock {
            self.huge_pages = Some(HugePagesKind::Off);
        }
        choose(choice);
        self
    }
}

/// A log position as messages name it: two hexadecimal numbers with a slash between.
fn log_position(text: &str) -> Result<u64, String> {
    let part = |text: &str| u32::from_str_radix(text, 16).ok().map(u64::from);
    text.split_once('/')
        .and_then(|(high, low)| Some(part(high)? << 32 | part(low)?))
        .ok_or_else(|| format!("'{text}' is no position of the log, as 0/1A2B3C8"))
}

/// Tells a user of the shipped executable which one has variants.
#[cfg(not(variants))]
fn no_variants(_: &str) -> Result<String, String> {
    Err("this executable has no variants; 'make variants' builds target/variants/release/allcore".to_owned())
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("'{text}' is no whole number: give one, such as 3"))
}

fn node(text: &str) -> Result<usize, String> {
    let advice = "give the kernel's number, such as 0 ('lscpu' lists the nodes)";
    text.parse().map_err(|_| format!("'{text}' is no number of a NUMA node: {advice}"))
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
