//! Signals end the program, with the terminal as it was.
//!
//! A signal sets a flag, and the loop of the screen ends. That loop can be stuck: the library for
//! terminals reads without end from one that has gone, and waits within half an escape sequence. A
//! server can accept a connection and say nothing. So a thread ends the program if the loop has not
//! ended soon after the signal.
//!
//! A prompt for a password sits in a read and turns the terminal's echo off. So the thread puts the
//! modes of the terminal back that it had before. A program with nothing but prompts ends at once:
//! a prompt would take the password that a key ends after the signal.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::is_raw_mode_enabled;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// How long the loop of the screen has to end.
const SOON: Duration = Duration::from_millis(500);
/// A program that a signal ended has this status, and the signal's number added.
const BY_SIGNAL: i32 = 128;

/// The terminal that controls the program, and its modes.
fn terminal() -> Option<(File, Termios)> {
    let terminal = File::open("/dev/tty").ok()?;
    let modes = tcgetattr(&terminal).ok()?;
    Some((terminal, modes))
}

/// Has the next SIGHUP, SIGINT, SIGQUIT or SIGTERM end the program at once, with the terminal in
/// its present modes. A prompt for a password may change them.
///
/// # Errors
///
/// One line that says why there can be no such end.
pub fn restore_terminal_at_signals() -> Result<(), String> {
    end_after(Duration::ZERO).map(drop)
}

/// Listens for signals from now on. Returns the flag that the first one sets. The loop of the
/// screen has 500 ms to end then.
pub(crate) fn listen() -> Result<Arc<AtomicBool>, String> {
    end_after(SOON)
}

/// Returns the flag that the first signal sets. The program ends `soon` after it.
fn end_after(soon: Duration) -> Result<Arc<AtomicBool>, String> {
    let terminal = terminal();
    let cannot = |error| format!("cannot listen for signals: {error}");
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM]).map_err(cannot)?;
    let end = Arc::new(AtomicBool::new(false));
    let flag = end.clone();
    let wait = move || {
        let Some(signal) = signals.forever().next() else { return };
        flag.store(true, Ordering::Relaxed); // Relaxed: the flag publishes nothing else
        thread::sleep(soon);
        if is_raw_mode_enabled().unwrap_or(true) {
            let _ = ratatui::try_restore();
            let _ = execute!(std::io::stdout(), Show);
        }
        if let Some((terminal, modes)) = &terminal {
            let _ = tcsetattr(terminal, OptionalActions::Now, modes);
        }
        std::process::exit(BY_SIGNAL + signal);
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map_err(cannot)?;
    Ok(end)
}
