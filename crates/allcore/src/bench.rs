//! `allcore bench`: the lab, with this program's own `serve` for arms that ask for it.

use std::io::Write as _;
use std::process::ExitCode;

use lab::interrupt;
use lab::options::Bench;
use lab::run::{Fault, bench};

/// Runs the lab. An error may have several lines: a script's error shows its place.
pub fn run(options: &Bench) -> ExitCode {
    let ended = interrupt::watch().map_err(Fault::from).and_then(|stop| {
        #[expect(clippy::disallowed_methods, reason = "the lab starts this program again as its arms")]
        let executable = std::env::current_exe();
        let executable = executable.map_err(|error| format!("this program does not find itself: {error}"))?;
        bench(options, &executable, &stop)
    });
    match ended {
        Ok(ending) => ExitCode::from(ending.status()),
        Err(fault) => {
            // Fails if Ctrl-C has also ended the reader of a pipe; then nobody reads it.
            #[expect(clippy::disallowed_methods, reason = "the lab's errors go to the terminal")]
            let _ = writeln!(std::io::stderr(), "allcore bench: {}", fault.reason.trim_end());
            ExitCode::from(fault.status)
        }
    }
}
