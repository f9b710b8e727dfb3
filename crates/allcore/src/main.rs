//! The `allcore` command: serve a data folder, check one, set passwords, watch and measure servers.
//!
//! What must hold:
//!
//! 1. Only `serve` makes a data folder. The other commands ask [`must_be_data_folder`] before they
//!    open or write anything. A file in an empty folder would keep a server from making it a data
//!    folder.
//! 2. Each command but `bench`, which reports itself, ends through `main`. One line says why it
//!    failed, and the log is flushed before the process exits.
//! 3. The process's allocator counts for sessions. The server's bounds of memory rest on it.
//! 4. A password is never an argument of the command, because other users can read those.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod access;
mod bench;
mod check;
mod folder;
mod logger;
mod passwords;
mod serve;
mod settings;
mod units;

/// Counts the memory that each session holds.
#[global_allocator]
static ALLOCATOR: runtime::account::Counting = runtime::account::Counting;

use clap::{Parser, Subcommand};
use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;
use std::process::ExitCode;

/// An OLTP database that speaks PostgreSQL's protocol and SQL and uses every core of one machine
#[derive(Parser)]
#[command(name = "allcore", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve a data folder to PostgreSQL clients
    #[command(long_about = SERVE_HELP)]
    Serve(Box<settings::ServeSettings>),
    /// Measure servers side by side: where each stops scaling, and why
    #[command(long_about = BENCH_HELP)]
    Bench(Box<lab::options::Bench<bench::Verb>>),
    /// Show live in a terminal what a running server does
    #[command(long_about = TOP_HELP)]
    Top(top::Options),
    /// Verify every page, tree and index of a stopped server's data folder
    #[command(long_about = CHECK_HELP)]
    Check {
        /// Folder of the database
        #[arg(long, value_name = "DIR", env = "ALLCORE_DATA")]
        data: PathBuf,
    },
    /// Set the password of a user, for servers started with --auth scram
    #[command(long_about = PASSWD_HELP)]
    Passwd {
        /// Folder of the database
        #[arg(long, value_name = "DIR", env = "ALLCORE_DATA")]
        data: PathBuf,
        /// The user
        user: String,
        /// Read the password from standard input, one line, without a prompt
        #[arg(long)]
        stdin: bool,
    },
}

const SERVE_HELP: &str = "\
Serve a data folder to PostgreSQL clients.

The server makes the folder if it is empty or absent. The environment may give every setting (the \
variable in brackets), and so may a file named by --config (TOML, `name = value`, names as the long \
options). The command line wins over the environment, the environment over the file. Nothing needs \
tuning to start with:

  allcore serve --data /srv/db
  psql -h 127.0.0.1 -U postgres postgres

SIGTERM and SIGINT (Ctrl-C) stop the server cleanly. It cancels open statements, rolls open \
transactions back and writes a last checkpoint, so that the next start has nothing to recover. kill \
-9 loses nothing that was acknowledged either; the next start recovers it from the log.

On SIGHUP the server reads the file of --config, the certificate and the passwords again. Later \
connections use them. If something cannot be used, everything stays as it was, and the log says why.";

const BENCH_HELP: &str = "\
Measure servers that speak PostgreSQL's or MySQL's protocol, side by side, over a sweep of clients: \
throughput and latency with their intervals, the point where each stops scaling, and what grows there.

One server that runs already, and how it scales:

  allcore bench --arm pg=postgres://bench@db1/bench -w select-only --clients 1..256 --html report.html

Servers that the lab starts on empty folders and removes again, the second compared with the first:

  allcore bench --arm a=serve --arm pg=serve-postgres:shared_buffers=2GB -w tpcc --scale 20

One setting, everything else alike:

  allcore bench --arm pg=serve-postgres --vary shared_buffers=256MB,4GB -w tpcb-like --scale 50

Latency at a given rate, counted from when each transaction was due:

  allcore bench --arm pg=postgres://bench@db1/bench -w oltp_read_write --clients 64 --rate 500..5000

Published mechanisms beside what they replaced, apart from any server:

  allcore bench mechanism --list

Two stored runs, and one shown again:

  allcore bench compare monday.json tuesday.json
  allcore bench report monday.json --html monday.html

Arms take turns round by round, so that a drifting machine favours none. A point's rounds go on until \
its interval is as narrow as --width asks, or --rounds or --time are used up. The table goes to \
standard output, progress to standard error: a live view on a terminal, a line for each round \
elsewhere. Ctrl-C ends the run with what it has measured; a second one ends it at once.

Things that could not be observed beside a run, such as symbols without perf, are named and change no \
exit status. docs/lab.md explains the method and how to read a report.";

const TOP_HELP: &str = "\
Show live in a terminal what a running server does.

Connects as an ordinary client and reads the server's views: transactions, cores, sessions by state and \
wait event, buffers, the log, the hottest locks while the lock profiler is on, and the sessions, the \
longest statement first. Enter opens a session with its whole statement.

  allcore top --host 127.0.0.1 --interval 1s
  allcore top --host /run/allcore --once

The environment may give the password (PGPASSWORD). Without it, the command asks where the server wants \
one. It does not speak TLS: where a server requires that, connect through its Unix socket.";

const CHECK_HELP: &str = "\
Verify every page, tree and index of a stopped server's data folder.

Reads all pages in use and verifies their checksums, then every tree: order of keys, links, levels, \
that no page is used twice or lost, and that tables and their indexes agree. Exit status 0 when all is \
well, 1 with a line for each fault otherwise. The command changes nothing in the folder. If the server \
was killed, it repeats the log in memory and in a nameless file in the folder for temporary files \
(TMPDIR), and so checks what the next start will find.";

const PASSWD_HELP: &str = "\
Set the password of a user, for servers started with --auth scram.

The folder keeps only a SCRAM-SHA-256 verifier, never the password. A running server uses the change \
from the next login on.";

/// Most bytes of its input in which `allcore passwd` looks for the end of the password's line.
const LONGEST_INPUT: u64 = 64 << 10;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().verb {
        #[cfg(not(variants))]
        Verb::Serve(settings) => serve::run(*settings),
        #[cfg(variants)]
        Verb::Serve(settings) => serve::run(settings.with_variants()).inspect(|()| {
            log::info!("variants: runs of each row: {}", variants::runs::line(&variants::chosen::chosen()));
        }),
        Verb::Bench(options) => return bench::run(*options),
        Verb::Top(options) => top::run(&options),
        Verb::Check { data } => check::run(&data),
        Verb::Passwd { data, user, stdin } => set_password(&data, &user, stdin),
    };
    if let Err(fault) = &outcome {
        logger::last_line(fault);
    }
    logger::flush();
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// An error unless a server has made `data`: only `serve` makes a data folder.
fn must_be_data_folder(data: &std::path::Path) -> Result<(), String> {
    match runtime::file::exists(&data.join("ALLCORE")) {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(format!("{} is no data folder: start 'allcore serve --data' on it once", data.display()))
        }
        Err(fault) => Err(format!("{}: {fault}", data.display())),
    }
}

#[expect(clippy::disallowed_methods, reason = "`allcore passwd` reads the password that its user pipes in")]
fn set_password(data: &std::path::Path, user: &str, stdin: bool) -> Result<(), String> {
    // A file in an empty folder would keep a server from making it a data folder.
    must_be_data_folder(data)?;
    let password = if stdin || !std::io::stdin().is_terminal() {
        let mut text = String::new();
        let mut input = std::io::stdin().lock().take(LONGEST_INPUT);
        input.read_line(&mut text).map_err(|e| format!("cannot read the password: {e}"))?;
        if input.limit() == 0 {
            return Err(format!("the first line has {LONGEST_INPUT} bytes or more: it is no password"));
        }
        text.lines().next().unwrap_or("").to_owned()
    } else {
        top::restore_terminal_at_signals()?;
        let ask = |prompt: &str| rpassword::prompt_password(prompt).map_err(|e| format!("cannot ask: {e}"));
        let password = ask(&format!("New password for {user}: "))?;
        if ask("Once more: ")? != password {
            return Err("the two passwords differ; nothing was changed".to_owned());
        }
        password
    };
    if password.is_empty() {
        return Err("an empty password is none; nothing was changed".to_owned());
    }
    passwords::Passwords::set(data, user, &password)
}
