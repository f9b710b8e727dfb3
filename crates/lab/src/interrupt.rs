//! Signals. The first Ctrl-C or termination signal ends a run with its results so far, the second
//! one ends the program. A closed terminal ends the run as the first signal does.
//!
//! Servers that the lab started are stopped by their guards (`arm`), which notice that the lab is
//! gone. The lab ignores Ctrl-Z: figures around a pause would be worthless.

use std::io::Write;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use sync::atomic::{AtomicBool, Ordering};

/// Exit status of a program that a Ctrl-C ended.
pub(crate) const STOPPED: u8 = 130;

/// Returns the flag that the first signal sets.
pub fn watch() -> Result<Arc<AtomicBool>, String> {
    // A signal that nohup set to be ignored stays ignored.
    let heeded: Vec<i32> = [SIGINT, SIGTERM, SIGTSTP, SIGHUP]
        .into_iter()
        .filter(|signal| *signal != SIGHUP || !is_ignored(*signal))
        .collect();
    let signals = Signals::new(heeded);
    let mut signals = signals.map_err(|error| format!("cannot listen for signals: {error}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    let set = stop.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            match signal {
                SIGTSTP => {}
                // Relaxed, here and below: the flag publishes nothing else. The kernel and the
                // shell may both report a closed terminal, so a second SIGHUP is no second wish.
                SIGHUP => set.store(true, Ordering::Relaxed),
                _ if set.swap(true, Ordering::Relaxed) => end_at_once(),
                _ => {}
            }
        }
    });
    Ok(stop)
}

fn end_at_once() -> ! {
    let _ = writeln!(std::io::stderr(), "\nended at once: nothing more is reported");
    std::process::exit(i32::from(STOPPED));
}

fn is_ignored(signal: i32) -> bool {
    let status = procfs::process::Process::myself().and_then(|own| own.status());
    status.is_ok_and(|status| status.sigign & (1 << (signal - 1)) != 0)
}
