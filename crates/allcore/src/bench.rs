//! `allcore bench`: the lab, with this program's own `serve` for arms that ask for it.

use std::process::ExitCode;
use std::sync::Arc;

use lab::options::Bench;
use lab::run::{Ending, bench};
use signal_hook::consts::{SIGINT, SIGTERM};
use sync::atomic::AtomicBool;

/// Exit status of a run that has measured something, but not all, or whose data is not as it must be.
const LACKING: u8 = 3;
/// As of a program that a Ctrl-C ended.
const STOPPED: u8 = 130;

/// Runs the lab. The first signal ends the run with what it has measured, the second one at once.
pub fn run(options: &Bench) -> Result<ExitCode, String> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(STOPPED), stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(|error| format!("cannot listen for signals: {error}"))?;
    }
    let executable =
        std::env::current_exe().map_err(|error| format!("this program does not find itself: {error}"))?;
    Ok(match bench(options, &executable, &stop)? {
        Ending::Whole => ExitCode::SUCCESS,
        Ending::Lacking => ExitCode::from(LACKING),
        Ending::Stopped => ExitCode::from(STOPPED),
    })
}
