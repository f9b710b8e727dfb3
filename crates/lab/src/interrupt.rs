//! Ctrl-C, and the signal to end: the first one ends a run with what it has measured, the second one the program.
//!
//! What must hold: the terminal is as it was either way. Servers that the lab started are stopped by their guards (`arm`),
//! which notice that the lab is gone.

use std::io::Write;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sync::atomic::{AtomicBool, Ordering};

use crate::view;

/// Exit status of a program that a Ctrl-C ended.
pub const STOPPED: u8 = 130;

/// What the first signal sets.
pub fn watch() -> Result<Arc<AtomicBool>, String> {
    let signals = Signals::new([SIGINT, SIGTERM]);
    let mut signals = signals.map_err(|error| format!("cannot listen for signals: {error}"))?;
    let stop = Arc::new(AtomicBool::new(false));
    let set = stop.clone();
    thread::spawn(move || {
        for _ in signals.forever() {
            // Relaxed: nothing else is handed over by it.
            if set.swap(true, Ordering::Relaxed) {
                // Held to the end: nobody draws any more.
                let mut error = std::io::stderr().lock();
                view::restore();
                let _ = writeln!(error, "\nended at once: nothing is reported");
                std::process::exit(i32::from(STOPPED));
            }
        }
    });
    Ok(stop)
}
