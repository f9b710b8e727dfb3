//! `allcore bench`: the lab, with this program's own `serve` for arms that ask for it.

use std::io::Write as _;
use std::process::ExitCode;

use lab::interrupt::{self, STOPPED};
use lab::options::Bench;
use lab::run::{Ending, bench};

/// Exit status of a run that has measured something, but not all, or whose data is not as it must be.
const LACKING: u8 = 3;

/// Runs the lab. Its faults may have several lines: a script's shows the place.
pub fn run(options: &Bench) -> ExitCode {
    let ended = interrupt::watch().and_then(|stop| {
        let executable = std::env::current_exe();
        let executable = executable.map_err(|error| format!("this program does not find itself: {error}"))?;
        bench(options, &executable, &stop)
    });
    match ended {
        Ok(Ending::Whole) => ExitCode::SUCCESS,
        Ok(Ending::Lacking) => ExitCode::from(LACKING),
        Ok(Ending::Stopped) => ExitCode::from(STOPPED),
        Err(fault) => {
            // Behind a pipe whose reader a Ctrl-C has ended, too, nobody is told.
            let _ = writeln!(std::io::stderr(), "allcore bench: {}", fault.trim_end());
            ExitCode::FAILURE
        }
    }
}
