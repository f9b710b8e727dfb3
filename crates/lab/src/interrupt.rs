//! Signals: Ctrl-C or the signal to end ends a run with what it has measured, a second one the program; a terminal that
//! goes away ends the run as the first one does.
//!
//! What must hold: the CPUs of a server that was pinned are as they were on every way out. Servers
//! that the lab started are stopped by their guards (`arm`), which notice that the lab is gone.
//! A run is not paused: Ctrl-Z is not heeded, since what is measured around a pause is worth nothing.

use std::io::Write;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use sync::atomic::{AtomicBool, Ordering};

use crate::observe::give_back;

/// Exit status of a program that a Ctrl-C ended.
pub(crate) const STOPPED: u8 = 130;

/// What the first signal sets.
pub fn watch() -> Result<Arc<AtomicBool>, String> {
    // What nohup has the program ignore stays ignored.
    let heeded: Vec<i32> = [SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGHUP]
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
                SIGQUIT => {
                    give_back();
                    // Returns only where it fails, and there is nothing else to do then.
                    let _ = emulate_default_handler(signal);
                }
                // Relaxed: nothing else is handed over by it, here and below. A terminal that goes away is often told of
                // more than once, by the kernel and by the shell, which is no second wish.
                SIGHUP => set.store(true, Ordering::Relaxed),
                _ if set.swap(true, Ordering::Relaxed) => end_at_once(),
                _ => {}
            }
        }
    });
    Ok(stop)
}

fn end_at_once() -> ! {
    give_back();
    let _ = writeln!(std::io::stderr(), "\nended at once: nothing more is reported");
    std::process::exit(i32::from(STOPPED));
}

fn is_ignored(signal: i32) -> bool {
    let status = procfs::process::Process::myself().and_then(|own| own.status());
    status.is_ok_and(|status| status.sigign & (1 << (signal - 1)) != 0)
}
