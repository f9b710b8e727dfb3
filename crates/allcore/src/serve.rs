//! `allcore serve`: from settings to a running server and back down.

use crate::logger;
use crate::passwords::Passwords;
use crate::settings::{AuthKind, DEFAULT_LISTEN, DEFAULT_MAX_CONNECTIONS, FileIoKind, ServeSettings};
use crate::units::Bytes;
use runtime::net::Address;
use server::{Options, PasswordSource, Server};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sql::database::{Database, OpenError};
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Descriptors beside those of connections: files, event queues, listeners.
const OWN_DESCRIPTORS: u64 = 128;
/// The port in the Unix socket's name where no TCP address says another.
const DEFAULT_PORT: u16 = 5432;
/// How long a client may take to log in.
const LOGIN_LIMIT: Duration = Duration::from_secs(60);

/// Serves until SIGTERM or SIGINT.
pub fn run(settings: ServeSettings) -> Result<(), String> {
    logger::install();
    let settings = settings.with_file()?;
    let data = settings.data.clone().ok_or("which folder? name one with --data DIR")?;
    if data.is_file() {
        return Err(format!("{} is no data folder: it is a file", data.display()));
    }
    let tls = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => {
            Some(server::tls::load(certificate, key).map_err(|fault| fault.to_string())?)
        }
        (None, None) => None,
        _ => return Err("--tls-cert and --tls-key go together".to_owned()),
    };
    let addresses = addresses(&settings)?;
    let max_connections = connections(settings.max_connections)?;
    let options = sql::database::Options {
        cores: Some(cores(&settings)?),
        pin: true,
        memory: Some(buffers(&settings)?),
        file_io: match settings.file_io.unwrap_or(FileIoKind::Auto) {
            FileIoKind::Auto => runtime::FileIo::Auto,
            FileIoKind::IoUring => runtime::FileIo::IoUring,
            FileIoKind::Threads => runtime::FileIo::Threads,
        },
        max_connections,
        discard_log_after: settings.discard_log_after,
        given: given(&settings, &addresses, tls.is_some()),
        ..sql::database::Options::default()
    };
    // Before the first thread is there, so that every thread leaves these signals to this one.
    let mut signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|e| format!("cannot listen for signals: {e}"))?;
    log::info!("allcore {} opens {}", env!("CARGO_PKG_VERSION"), data.display());
    let database = Database::open(&data, options).map_err(|fault| open_fault(&data, &fault))?;
    for fact in database.facts() {
        log::info!("{fact}");
    }
    let started = password_source(settings.auth.unwrap_or(AuthKind::Trust), &data).and_then(|passwords| {
        let options = Options { addresses, tls, passwords, login_limit: LOGIN_LIMIT };
        let started = Server::start(database.clone(), options);
        started.map_err(|fault| format!("cannot listen on {}: {}", fault.address, fault.fault))
    });
    let server = match started {
        Ok(server) => server,
        Err(fault) => {
            // The folder was opened for nothing: it is closed as cleanly as after a day's work.
            let closed = database.shutdown().map_err(|fault| open_fault(&data, &fault));
            return closed.and(Err(fault));
        }
    };
    for address in server.addresses() {
        log::info!("listening on {address}");
    }
    log::info!("ready for connections, at most {max_connections}");
    let signal = signals.forever().next();
    let name = if signal == Some(SIGINT) { "SIGINT" } else { "SIGTERM" };
    log::info!("stopping on {name}: sessions end, a last checkpoint is written; a second signal skips that");
    for signal in [SIGTERM, SIGINT] {
        // Nothing acknowledged is lost: the next start recovers as after a kill.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::new(true.into()))
            .map_err(|e| format!("cannot listen for signals: {e}"))?;
    }
    server.stop();
    database.shutdown().map_err(|fault| open_fault(&data, &fault))?;
    log::info!("stopped");
    Ok(())
}

/// Where to listen, in the runtime's words.
fn addresses(settings: &ServeSettings) -> Result<Vec<Address>, String> {
    let mut addresses = Vec::new();
    let mut port = DEFAULT_PORT;
    let default = [DEFAULT_LISTEN.to_owned()];
    let named = if settings.listen.is_empty() { &default[..] } else { &settings.listen };
    for text in named.iter().filter(|text| *text != "none") {
        let found = text.to_socket_addrs().map_err(|e| format!("cannot listen on {text}: {e}"))?;
        for address in found {
            port = address.port();
            addresses.push(Address::Tcp(address));
        }
    }
    if let Some(folder) = &settings.socket_dir {
        if !folder.is_dir() {
            return Err(format!("--socket-dir {} is no folder", folder.display()));
        }
        addresses.push(Address::Unix { path: folder.join(format!(".s.PGSQL.{port}")), mode: 0o777 });
    }
    if addresses.is_empty() {
        return Err("nowhere to listen: name a --listen address or a --socket-dir".to_owned());
    }
    Ok(addresses)
}

/// What SHOW tells of where the server listens.
fn given(settings: &ServeSettings, addresses: &[Address], tls: bool) -> Vec<(&'static str, String)> {
    let tcp = |address: &Address| match address {
        Address::Tcp(address) => Some(*address),
        Address::Unix { .. } => None,
    };
    let hosts: Vec<String> = addresses.iter().filter_map(tcp).map(|one| one.ip().to_string()).collect();
    let folder = settings.socket_dir.as_ref().map(|folder| folder.display().to_string());
    vec![
        ("listen_addresses", hosts.join(", ")),
        (
            "port",
            addresses.iter().filter_map(tcp).next_back().map_or(DEFAULT_PORT, |one| one.port()).to_string(),
        ),
        ("unix_socket_directories", folder.unwrap_or_default()),
        ("ssl", if tls { "on" } else { "off" }.to_owned()),
    ]
}

/// Cores to use: what was said, or all there are. More workers than processors would only wait for each other.
fn cores(settings: &ServeSettings) -> Result<usize, String> {
    let most = runtime::processor_count();
    match settings.cores {
        Some(wanted) if wanted > most => {
            Err(format!("--cores {wanted} is too many: this process may use {most}"))
        }
        wanted => Ok(wanted.unwrap_or(most)),
    }
}

/// Bytes of the buffer pool: what was said, or a quarter of the memory.
fn buffers(settings: &ServeSettings) -> Result<usize, String> {
    let memory = runtime::memory::available_bytes()
        .map_err(|e| format!("cannot tell how much memory there is: {e}"))?;
    let (wanted, most) = (settings.buffers.unwrap_or(Bytes(memory / 4)), Bytes(memory / 10 * 9));
    if wanted > most {
        return Err(format!(
            "--buffers {wanted} does not fit this machine's memory of {}: at most {most} can be buffers",
            Bytes(memory)
        ));
    }
    let cores = cores(settings)?;
    let least = Bytes(sql::database::least_memory(cores) as u64);
    if wanted < least {
        return Err(format!("--buffers {wanted} is too little for {cores} cores: at least {least}"));
    }
    usize::try_from(wanted.0).map_err(|_| format!("--buffers {wanted} is too much for this machine"))
}

/// Connections at one time: what was said, or the default, as far as open descriptors allow it. Raises their limit as
/// far as this process may.
fn connections(asked: Option<usize>) -> Result<usize, String> {
    let wanted = asked.unwrap_or(DEFAULT_MAX_CONNECTIONS);
    let needed = wanted as u64 + OWN_DESCRIPTORS;
    let granted = rlimit::increase_nofile_limit(needed.max(65_536)).unwrap_or(0);
    if granted >= needed {
        return Ok(wanted);
    }
    // Nobody asked for so many: fewer will do, as long as there are some.
    if asked.is_none() && granted >= 2 * OWN_DESCRIPTORS {
        let fewer = (granted - OWN_DESCRIPTORS) as usize;
        log::warn!("only {granted} file descriptors are allowed: at most {fewer} connections, not {wanted}");
        return Ok(fewer);
    }
    Err(format!(
        "too few file descriptors: {wanted} connections need {needed}, the limit is {granted}; \
         raise it with 'ulimit -n {needed}' or lower --max-connections"
    ))
}

fn password_source(auth: AuthKind, data: &Path) -> Result<Option<PasswordSource>, String> {
    if auth == AuthKind::Trust {
        return Ok(None);
    }
    if Passwords::read(data)?.is_empty() {
        return Err(format!(
            "--auth scram needs passwords and nobody has one: set it with 'allcore passwd --data {} postgres'",
            data.display()
        ));
    }
    let data: PathBuf = data.to_path_buf();
    // Read at each login, so that a change needs no restart; other sessions of the core go on meanwhile.
    Ok(Some(Box::new(move |user| match runtime::file::blocking(|| Passwords::read(&data)) {
        Ok(passwords) => passwords.verifier(user),
        Err(fault) => {
            log::error!("{fault}");
            None
        }
    })))
}

fn open_fault(data: &Path, fault: &OpenError) -> String {
    format!("{}: {fault}", data.display())
}
