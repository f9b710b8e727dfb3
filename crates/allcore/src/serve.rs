//! `allcore serve`: from settings to a running server and back down.
//!
//! What must hold:
//!
//! 1. Certificate, addresses and bounds of memory are judged before the folder is opened. So a
//!    mistake in them changes nothing.
//! 2. Signals have their handlers before the first worker exists. A signal is then never lost to a
//!    thread without one.
//! 3. Addresses are bound before the folder is opened, and the server takes the same sockets.
//!    Clients that come in between get an answer, and none is refused.
//! 4. A reload is read whole before anything of it takes effect. If one part cannot be used,
//!    everything stays as it was.
//! 5. A reload keeps the settings that count only at the start, and warns about those that differ.
//! 6. At the end the server stops accepting, then sessions end, then the last checkpoint is
//!    written. A second signal skips the rest, and the next start recovers.
//! 7. Buffers and the memory of sessions fit the machine together. If their sizes were named and do
//!    not fit, the server does not start.

use crate::access;
use crate::folder;
use crate::logger;
use crate::settings::{
    Change, DEFAULT_LISTEN, DEFAULT_MAX_CONNECTIONS, FileIoKind, HugePagesKind, LogFormat, LogLevel,
    ServeSettings, SweepBatch, Switch,
};
use crate::units::{Bytes, Span};
use runtime::memory::HugePages;
use runtime::net::{Address, Bound, Door};
use server::{Options, Policy, Server};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sql::database::{Database, OpenError};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use sync::atomic::{AtomicBool, Ordering};

/// File descriptors beside those of connections and workers: files, listeners, signals.
const OWN_DESCRIPTORS: u64 = 64;
/// File descriptors of a worker: event queues and rings.
const WORKER_DESCRIPTORS: usize = 8;
/// Least default number of connections on their way in. One holder gets half of them, and may open
/// a pool of 64 at once.
const DEFAULT_LOGINS: usize = 128;
/// Connections on their way in that always find a descriptor among these.
const LEAST_LOGINS: usize = 16;
/// Memory of a connection that no session's account counts: its own and its stack, in bytes.
const CONNECTION_BYTES: u64 = 112 << 10;
/// Least default number of connections, whatever the memory.
const LEAST_CONNECTIONS: usize = 100;
/// Least default of `--max-retained-log`: four times the distance between checkpoints.
const LEAST_RETAINED: u64 = 1 << 30;
/// Least `--max-retained-log` that may be named. With less, no transaction could write.
const LEAST_NAMED_RETAINED: Bytes = Bytes(1 << 20);
/// Least memory with which sessions are of use.
const LEAST_MEMORY: Bytes = Bytes(32 << 20);
/// Nanoseconds between two lines on how far a preload is.
const BETWEEN_REPORTS: u64 = 2_000_000_000;
/// Port in the Unix socket's name if there is no TCP address.
const DEFAULT_PORT: u16 = 5432;

/// Limits on the number of connections.
#[derive(Clone, Copy)]
struct Room {
    /// Sessions.
    sessions: usize,
    /// Connections that have not logged in.
    logins: usize,
}

/// The options with which the database of these settings opens. `tls` says whether clients may use
/// it, and `sessions` bounds the sessions.
fn database_options(
    settings: &ServeSettings,
    (addresses, tls): (&[Address], bool),
    buffers: usize,
    sessions: usize,
) -> Result<sql::database::Options, String> {
    Ok(sql::database::Options {
        cores: Some(cores(settings)?),
        pin: true,
        memory: Some(buffers),
        file_io: match settings.file_io.unwrap_or(FileIoKind::Auto) {
            FileIoKind::Auto => runtime::FileIo::Auto,
            FileIoKind::IoUring => runtime::FileIo::IoUring,
            FileIoKind::Threads => runtime::FileIo::Threads,
        },
        max_connections: sessions,
        discard_log_after: settings.discard_log_after,
        sweep_batch: match settings.clock_sweep_batch.unwrap_or(SweepBatch::Auto) {
            SweepBatch::Auto => None,
            SweepBatch::Frames(frames) => Some(frames),
        },
        huge_pages: huge_pages(settings, buffers)?,
        autoanalyze: settings.autoanalyze != Some(Switch::Off),
        read_only_settings: shown(settings, addresses, tls, access::reserved(settings, sessions)?),
        ..sql::database::Options::default()
    })
}

/// Serves until SIGTERM or SIGINT.
pub fn run(command_line: ServeSettings) -> Result<(), String> {
    logger::install(LogFormat::Text, LogLevel::Info);
    let settings = command_line.clone().with_file()?;
    set_log(&settings);
    confine(&settings)?;
    let data = settings.data.clone().ok_or("which folder? name one with --data DIR")?;
    if runtime::file::access(&data).is_ok_and(|access| !access.is_folder) {
        return Err(format!("{} is no data folder: it is a file", data.display()));
    }
    let tls = access::tls(&settings)?;
    let addresses = addresses(&settings)?;
    access::check_trust(&settings, &addresses)?;
    let buffers = buffers(&settings)?;
    let memory = memory(&settings, buffers as u64)?;
    let all = available_bytes(&settings)?;
    let beside = all.saturating_sub(buffers as u64 + memory.0);
    let room = room(&settings, beside)?;
    check_retained_log(&settings)?;
    let options = database_options(&settings, (&addresses, tls.is_some()), buffers, room.sessions)?;
    folder::keep_private(&data)?;
    // Before the first worker exists, so that every signal finds its handler.
    let (mut signals, stop) = listen_for_signals().map_err(|e| format!("cannot listen for signals: {e}"))?;
    log::info!("allcore {} opens {}", env!("CARGO_PKG_VERSION"), data.display());
    let metrics = bind_metrics(&settings)?;
    let door = open_door(addresses, tls.clone())?;
    let database = match Database::open(&data, options) {
        Ok(database) => database,
        Err(fault) => {
            drop(door.close());
            return Err(open_fault(&data, &fault));
        }
    };
    let is_apart = database.folder().pool().1.is_explicit();
    let resident = resident(all, buffers as u64, beside, is_apart);
    let bounded = database.bound_memory(memory.0, resident);
    let started =
        bounded.map_err(|fault| format!("the memory watch did not start: {fault}")).and_then(|()| {
            log_facts(&database, memory);
            database.limit_retained_log(retained_log(&settings, &data));
            logger::flush();
            if settings.preload == Some(true) {
                preload(&database, &stop);
            }
            let metrics = open_metrics(metrics, &database)?;
            let policy = access::policy(&settings, &data, tls, room.sessions, room.logins)?;
            let places = door.close();
            let started =
                places.and_then(|places| Server::start(database.clone(), Options { places, policy }));
            Ok((started.map_err(|fault| format!("cannot listen: {fault}"))?, metrics))
        });
    let (server, metrics) = match started {
        Ok(started) => started,
        Err(fault) => {
            // The folder was opened in vain. It is closed as cleanly as after a day's work.
            let closed = database.shutdown().map_err(|fault| open_fault(&data, &fault));
            return closed.and(Err(fault));
        }
    };
    for address in server.addresses() {
        log::info!("listening on {address}");
    }
    log::info!("ready for connections, at most {}", room.sessions);
    let name = until_stopped(&mut signals, &command_line, settings, &data, room, &server, &database);
    log::info!("stopping on {name}: sessions end, a last checkpoint is written; a second signal skips that");
    logger::flush();
    skip_at_next_signal();
    server.stop();
    drop(metrics);
    database.shutdown().map_err(|fault| open_fault(&data, &fault))?;
    log::info!("stopped");
    Ok(())
}

fn log_facts(database: &Database, memory: Bytes) {
    #[cfg(variants)]
    log::info!("variants in place of the engine's own mechanisms: {}", variants::chosen::chosen());
    log::info!("sessions may take {memory} of memory beside the buffers");
    for fact in database.facts() {
        log::info!("{fact}");
    }
}

/// The signals that the server obeys, and a flag that a signal to stop sets at once. That signal
/// also waits among the others, and stops the server once it runs.
fn listen_for_signals() -> std::io::Result<(Signals, Arc<AtomicBool>)> {
    let stop = Arc::new(AtomicBool::new(false));
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok((signals, stop))
}

/// Touches all memory of the buffers, and logs how far it is. A signal to stop ends it early, or
/// keeps it from beginning.
fn preload(database: &Database, stop: &AtomicBool) {
    // Relaxed: a flag that is looked at again.
    let is_stopped = || stop.load(Ordering::Relaxed);
    if is_stopped() {
        return;
    }
    let all = Bytes(database.folder().pool().0 as u64);
    let begun = runtime::time::precise();
    let mut told = begun;
    database.preload(&mut |bytes| {
        let now = runtime::time::precise();
        if now - told >= BETWEEN_REPORTS {
            told = now;
            log::info!("preloading buffers: {} of {} MiB have memory", bytes >> 20, all.0 >> 20);
        }
        !is_stopped()
    });
    if !is_stopped() {
        let seconds = (runtime::time::precise() - begun) as f64 / 1e9;
        log::info!("all {all} of buffers have memory, after {seconds:.1} s");
    }
}

/// From here on a signal ends the process at once.
fn skip_at_next_signal() {
    for signal in [SIGTERM, SIGINT] {
        // Nothing acknowledged is lost: the next start recovers as after a kill.
        let heard = signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::new(true.into()));
        if let Err(fault) = heard {
            log::warn!("a second signal does not skip the checkpoint: {fault}");
        }
    }
}

/// Binds the addresses before the folder is opened, which can take long. Clients meanwhile get the
/// error that the server is starting up.
fn open_door(addresses: Vec<Address>, tls: Option<Arc<server::tls::Offer>>) -> Result<Door, String> {
    let bind = |address: Address| {
        Bound::new(address.clone()).map_err(|fault| format!("cannot listen on {address}: {fault}"))
    };
    let places = addresses.into_iter().map(bind).collect::<Result<_, _>>()?;
    Door::open(places, server::starting(tls)).map_err(|fault| format!("cannot answer clients: {fault}"))
}

/// Serves metrics at these addresses, until the door is dropped.
fn open_metrics(places: Vec<Bound>, database: &Database) -> Result<Option<Door>, String> {
    if places.is_empty() {
        return Ok(None);
    }
    for place in &places {
        log::info!("metrics at http://{}/metrics", place.address());
    }
    let door = Door::open(places, server::metrics(database.clone()));
    door.map(Some).map_err(|fault| format!("cannot serve metrics: {fault}"))
}

fn check_retained_log(settings: &ServeSettings) -> Result<(), String> {
    match settings.max_retained_log {
        Some(most) if most < LEAST_NAMED_RETAINED => {
            Err(format!("--max-retained-log {most} is too little: at least {LEAST_NAMED_RETAINED}"))
        }
        _ => Ok(()),
    }
}

/// The log that an open transaction may keep: the value from the settings, or half of the disk. The
/// default is never so little that ordinary transactions between two checkpoints come near it.
fn retained_log(settings: &ServeSettings, data: &Path) -> u64 {
    let half = || runtime::file::disk_bytes(data).map_or(u64::MAX, |bytes| bytes / 2);
    settings.max_retained_log.map_or_else(|| half().max(LEAST_RETAINED), |bytes| bytes.0)
}

fn set_log(settings: &ServeSettings) {
    logger::set(settings.log_format.unwrap_or(LogFormat::Text), settings.log_level.unwrap_or(LogLevel::Info));
}

/// Waits for the signal to stop, and reloads the settings at each SIGHUP before it. Returns the
/// signal's name.
fn until_stopped(
    signals: &mut Signals,
    command_line: &ServeSettings,
    mut settings: ServeSettings,
    data: &Path,
    room: Room,
    server: &Server,
    database: &Database,
) -> &'static str {
    for signal in signals.forever() {
        match signal {
            SIGINT => return "SIGINT",
            SIGHUP => match reload(command_line, &settings, data, room, server) {
                Ok((new, policy)) => {
                    let changes = new.changes(&settings);
                    let addresses: Vec<Address> = server.addresses().cloned().collect();
                    database.show(shown(&new, &addresses, policy.tls.is_some(), policy.reserved));
                    server.reload(policy);
                    database.limit_retained_log(retained_log(&new, data));
                    set_log(&new);
                    settings = new;
                    for Change { name, from, to, weakens } in changes {
                        let level = if weakens { log::Level::Warn } else { log::Level::Info };
                        log::log!(level, "setting \"{name}\" changed from {from} to {to}");
                    }
                    log::info!("settings, certificate and passwords were read again on SIGHUP");
                }
                Err(fault) => log::error!("nothing was changed on SIGHUP: {fault}"),
            },
            _ => break,
        }
    }
    "SIGTERM"
}

/// Reads settings, certificate and passwords again. Returns them if all of them can be used.
fn reload(
    command_line: &ServeSettings,
    old: &ServeSettings,
    data: &Path,
    room: Room,
    server: &Server,
) -> Result<(ServeSettings, Policy), String> {
    let mut new = command_line.clone().with_file()?;
    for name in new.fixed_differences(old) {
        log::warn!("setting \"{name}\" cannot be changed without restarting the server");
    }
    new.keep_fixed(old);
    new.check_weakened(old)?;
    folder::keep_private(data)?;
    let addresses: Vec<Address> = server.addresses().cloned().collect();
    access::check_trust(&new, &addresses)?;
    let tls = access::tls(&new)?;
    let policy = access::policy(&new, data, tls, room.sessions, room.logins)?;
    Ok((new, policy))
}

/// Binds the addresses that serve metrics.
fn bind_metrics(settings: &ServeSettings) -> Result<Vec<Bound>, String> {
    let Some(text) = settings.metrics.as_ref().filter(|text| *text != "none") else { return Ok(Vec::new()) };
    let bind = |address| {
        let address = Address::Tcp(address);
        Bound::new(address.clone()).map_err(|fault| format!("cannot serve metrics at {address}: {fault}"))
    };
    resolve("--metrics", text)?.map(bind).collect()
}

/// The TCP addresses that the value of an option names.
fn resolve(option: &str, text: &str) -> Result<impl Iterator<Item = SocketAddr> + use<>, String> {
    #[expect(clippy::disallowed_methods, reason = "the command resolves names before the runtime starts")]
    let found = text.to_socket_addrs();
    found.map_err(|fault| {
        let advice = "give HOST:PORT, such as 127.0.0.1:5432, or 'none'";
        format!("{option} {text} names no address: {fault}; {advice}")
    })
}

/// The addresses of the settings, as the runtime takes them.
fn addresses(settings: &ServeSettings) -> Result<Vec<Address>, String> {
    let mut addresses = Vec::new();
    let mut port = DEFAULT_PORT;
    let default = [DEFAULT_LISTEN.to_owned()];
    let named = if settings.listen.is_empty() { &default[..] } else { &settings.listen };
    for text in named.iter().filter(|text| *text != "none") {
        for address in resolve("--listen", text)? {
            port = address.port();
            addresses.push(Address::Tcp(address));
        }
    }
    if let Some(folder) = &settings.socket_dir {
        if !runtime::file::access(folder).is_ok_and(|access| access.is_folder) {
            return Err(format!("--socket-dir {} is no folder", folder.display()));
        }
        addresses.push(Address::Unix { path: folder.join(format!(".s.PGSQL.{port}")), mode: 0o777 });
    }
    if addresses.is_empty() {
        return Err("nowhere to listen: name a --listen address or a --socket-dir".to_owned());
    }
    Ok(addresses)
}

/// The settings that SHOW returns for the server's addresses and connection limits.
fn shown(
    settings: &ServeSettings,
    addresses: &[Address],
    tls: bool,
    reserved: usize,
) -> Vec<(&'static str, String)> {
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
        ("superuser_reserved_connections", reserved.to_string()),
        ("authentication_timeout", settings.authentication_timeout.unwrap_or(Span::MINUTE).to_string()),
    ]
}

/// Number of cores to use: from the settings, or all there are. More workers than processors would
/// only wait for each other.
fn cores(settings: &ServeSettings) -> Result<usize, String> {
    let most = runtime::processor_count();
    match settings.cores {
        Some(wanted) if wanted > most => {
            Err(format!("--cores {wanted} is too many: this process may use {most}"))
        }
        wanted => Ok(wanted.unwrap_or(most)),
    }
}

/// Bytes of the buffer pool: from the settings, or a quarter of the memory.
fn buffers(settings: &ServeSettings) -> Result<usize, String> {
    let memory = available_bytes(settings)?;
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

/// Huge pages for the buffers: from the settings, if the system has as many as must be.
fn huge_pages(settings: &ServeSettings, buffers: usize) -> Result<HugePages, String> {
    match settings.huge_pages.unwrap_or(HugePagesKind::Try) {
        HugePagesKind::Try => Ok(HugePages::Try),
        HugePagesKind::Off => Ok(HugePages::Off),
        HugePagesKind::On => match sql::database::lacks_huge_pages(buffers) {
            None => Ok(HugePages::On),
            Some(pages) => Err(format!(
                "--huge-pages on: the system has no huge pages for buffers of {}: reserve {pages} of 2 MiB with \
                 'sysctl vm.nr_hugepages={pages}', or start with --huge-pages try",
                Bytes(buffers as u64)
            )),
        },
    }
}

/// Bytes that sessions may take together: from the settings, or three quarters of what the buffers
/// leave. The last quarter is for stacks, the kernel's buffers, and memory that is free and not
/// given back.
fn memory(settings: &ServeSettings, buffers: u64) -> Result<Bytes, String> {
    let all = available_bytes(settings)?;
    let wanted = settings.memory.unwrap_or(Bytes((all.saturating_sub(buffers) / 4 * 3).max(LEAST_MEMORY.0)));
    if wanted < LEAST_MEMORY {
        return Err(format!("--memory {wanted} is too little: at least {LEAST_MEMORY}"));
    }
    if settings.memory.is_some() && wanted.0.saturating_add(buffers) > all {
        let (buffers, all) = (Bytes(buffers), Bytes(all));
        return Err(format!(
            "--memory {wanted} and buffers of {buffers} do not fit this machine's memory of {all}"
        ));
    }
    Ok(wanted)
}

/// Bytes of `all` that may be resident. Half of what is `beside` buffers and sessions, at least a
/// sixteenth of all, is left to the kernel and the program. Buffers in huge pages lie `apart`: they
/// are not resident, and others cannot use them.
fn resident(all: u64, buffers: u64, beside: u64, apart: bool) -> u64 {
    let most = all - (beside / 2).max(all / 16);
    let needed = all - beside;
    if most < needed {
        log::warn!(
            "--buffers and --memory leave {} beside them, so sessions are stopped once more than {} is resident: \
             lower one of them",
            Bytes(beside),
            Bytes(most)
        );
    }
    if apart { most.saturating_sub(buffers) } else { most }
}

/// Confines the process to the node that the settings name. Its threads start later.
fn confine(settings: &ServeSettings) -> Result<(), String> {
    if let Some(node) = settings.node {
        runtime::topology::confine_to_node(node).map_err(|why| format!("--node {node}: {why}"))?;
        log::info!("runs on NUMA node {node}: its processors, and its memory as long as it has some");
    }
    Ok(())
}

/// Bytes that the process may use: of the node it is confined to, or of the machine.
fn available_bytes(settings: &ServeSettings) -> Result<u64, String> {
    let all = runtime::account::available_bytes();
    let all = all.map_err(|e| format!("cannot tell how much memory there is: {e}"))?;
    let of_node = settings.node.and_then(runtime::topology::node_bytes);
    Ok(all.min(of_node.unwrap_or(u64::MAX)))
}

/// Numbers of connections: from the settings, or the defaults as far as two bounds allow. The
/// bounds are open descriptors, and the memory `beside` that of buffers and sessions. Raises the
/// limit of descriptors as far as this process may.
fn room(settings: &ServeSettings, beside: u64) -> Result<Room, String> {
    let asked = (settings.max_connections, settings.max_logins);
    let fit = usize::try_from(beside / CONNECTION_BYTES).unwrap_or(usize::MAX).max(LEAST_CONNECTIONS);
    if asked.0.is_none() && fit < DEFAULT_MAX_CONNECTIONS {
        log::info!("the memory allows {fit} connections at most, not {DEFAULT_MAX_CONNECTIONS}");
    }
    let wanted = asked.0.unwrap_or(DEFAULT_MAX_CONNECTIONS.min(fit));
    let logins = asked.1.unwrap_or(0);
    // The reserve worker and the service worker stand beside the cores.
    let workers = cores(settings)? + 2;
    let own = OWN_DESCRIPTORS + (WORKER_DESCRIPTORS * workers) as u64;
    // Kept where there are enough. A counter without a descriptor is refused, and its view says so.
    let counters = (runtime::counters::EVENTS * workers) as u64;
    let needed = (wanted + logins) as u64 + own;
    let granted = rlimit::increase_nofile_limit((needed + counters).max(65_536)).unwrap_or(0);
    if granted >= needed {
        let spare = usize::try_from(granted.saturating_sub(needed + counters)).unwrap_or(usize::MAX);
        let logins = asked.1.unwrap_or(wanted.max(DEFAULT_LOGINS).min(spare).max(LEAST_LOGINS));
        return Ok(Room { sessions: wanted, logins });
    }
    // The number is a default, so fewer will do, as long as there are some.
    if asked == (None, None) && granted >= 2 * own {
        let fewer = (granted - (own + counters).min(granted / 2)) as usize;
        log::warn!("only {granted} file descriptors are allowed: at most {fewer} connections, not {wanted}");
        return Ok(Room { sessions: fewer, logins: LEAST_LOGINS });
    }
    let and_logins = if logins > 0 { format!(" and {logins} logins") } else { String::new() };
    Err(format!(
        "too few file descriptors: {wanted} connections{and_logins} need {needed}, the limit is {granted}; \
         raise it with 'ulimit -n {needed}' or lower --max-connections"
    ))
}

fn open_fault(data: &Path, fault: &OpenError) -> String {
    format!("{}: {fault}", data.display())
}
