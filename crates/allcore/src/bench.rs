//! `allcore bench`: the lab, with this program's own `serve` for arms that ask for it, and the
//! published mechanisms.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Subcommand;
use lab::interrupt;
use lab::options::Bench;
use lab::run::{Ending, Fault};
use sync::atomic::AtomicBool;

/// The commands of `allcore bench`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// The lab's own.
    #[command(flatten)]
    Lab(lab::options::Verb),
    /// Measure published mechanisms beside what they replaced, apart from any server
    #[command(long_about = MECHANISM_HELP)]
    Mechanism(mechanisms::options::Mechanism),
}

const MECHANISM_HELP: &str = "\
Measure published mechanisms beside what they replaced, apart from any server.

A row is a mechanism: the state that stopped scaling (stock), the steps, the published fix, and the \
engine's own type. All repeat the same operation, in alternating rounds, with each number of threads. \
The table has the median throughput with its 95% interval, the ratio to the stock state, the slowest \
and the fastest thread in percent of the mean, and retries and sleeps for each operation.

  allcore bench mechanism --list
  allcore bench mechanism spin latch --threads 1..64 --json locks.json

Ctrl-C ends the run with what it has measured; a second one ends it at once. Exit status 5: a variant \
failed its own check.";

/// Runs the lab. An error may have several lines: a script's error shows its place.
pub fn run(options: Bench<Verb>) -> ExitCode {
    match interrupt::watch().map_err(Fault::from).and_then(|stop| chosen(options, &stop)) {
        Ok(ending) => ExitCode::from(ending.status()),
        Err(fault) => {
            // Fails if Ctrl-C has also ended the reader of a pipe; then nobody reads it.
            #[expect(clippy::disallowed_methods, reason = "the lab's errors go to the terminal")]
            let _ = writeln!(std::io::stderr(), "allcore bench: {}", fault.reason.trim_end());
            ExitCode::from(fault.status)
        }
    }
}

fn chosen(options: Bench<Verb>, stop: &AtomicBool) -> Result<Ending, Fault> {
    let verb = match options.verb {
        Some(Verb::Mechanism(options)) => return mechanisms::run(&options, stop),
        Some(Verb::Lab(verb)) => Some(verb),
        None => None,
    };
    #[expect(clippy::disallowed_methods, reason = "the lab starts this program again as its arms")]
    let executable = std::env::current_exe();
    let executable = executable.map_err(|error| format!("this program does not find itself: {error}"))?;
    lab::run::bench(&Bench { verb, run: options.run }, &executable, stop)
}
