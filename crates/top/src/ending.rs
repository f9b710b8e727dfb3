//! Signals end the program, with the terminal as it was.
//!
//! A signal sets a flag, and the loop of the screen ends. That loop can be stuck: the library for
//! terminals reads without end from one that has gone, and waits within half an escape sequence. A
//! server can accept a connection and say nothing. So a thread ends the program if the loop has not
//! ended soon after the signal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long the loop of the screen has to end.
const SOON: Duration = Duration::from_millis(500);
/// A program that a signal ended has this status, and the signal's number added.
const BY_SIGNAL: i32 = 128;

/// Listens for signals from now on. Returns the flag that the first one sets.
pub(crate) fn listen() -> Result<Arc<AtomicBool>, String> {
    let cannot = |error| format!("cannot listen for signals: {error}");
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM]).map_err(cannot)?;
    let end = Arc::new(AtomicBool::new(false));
    let flag = end.clone();
    let wait = move || {
        let Some(signal) = signals.forever().next() else { return };
        flag.store(true, Ordering::Relaxed); // Relaxed: the flag publishes nothing else
        thread::sleep(SOON);
        let _ = ratatui::try_restore();
        let _ = execute!(std::io::stdout(), Show);
        std::process::exit(BY_SIGNAL + signal);
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(cannot)?;
    Ok(end)
}
