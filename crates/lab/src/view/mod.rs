//! What one sees while a run is under way: a live view on a terminal, a line for each finished round otherwise.
//!
//! What must hold:
//! 1. Everything goes to standard error, so that standard output can be a report.
//! 2. The terminal is as it was on every way out: at the end, on an error, after a panic. Keys are left alone, so that
//!    Ctrl-C reaches the sweep as ever.
//! 3. What can't be written is dropped: nobody looking is no reason to end a run.

mod lines;
mod screen;
mod state;

use std::io::{IsTerminal, Write};

use crate::figures;
use crate::sweep::Progress;

pub(crate) use screen::restore;

/// The view that suits standard error: live on a terminal, plain lines elsewhere.
pub fn progress() -> Box<dyn Progress> {
    let live = std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    match live.then(screen::Screen::new) {
        Some(Ok(screen)) => Box::new(screen),
        _ => Box::new(lines::Lines::new(std::io::stderr())),
    }
}

/// A line beside the run: what was given up, what is done now.
pub(crate) fn say(line: &str) {
    // Nobody looking is no reason to end a run: behind a pipe Ctrl-C ends the reader, too.
    let _ = writeln!(std::io::stderr(), "{}", figures::plain(line));
}
