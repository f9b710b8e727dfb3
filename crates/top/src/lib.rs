//! `allcore top`: what a running server does, live in a terminal, over an ordinary connection.
//!
//! The crate is a client and knows nothing of the engine. Each part has one task:
//!
//! 1. [`sample`] reads the server's views and gets numbers and texts.
//! 2. [`figures`] makes rates from two samples.
//! 3. [`state`] changes with each key.
//! 4. [`draw`] makes a frame from samples, figures and state, in a buffer of any size.
//! 5. [`source`] keeps the connection on a thread of its own, so that keys work while a server is
//!    slow or gone.
//! 6. [`screen`] joins them on a terminal, and [`plain`] prints one frame.
//! 7. [`ending`] ends the program by a signal, whatever the others wait for.
//!
//! What must hold:
//!
//! 1. No text of the server reaches the terminal before [`clean`] has taken its control characters.
//! 2. The terminal is as it was when the program ends: by a key, a signal, an error or a panic.
#![forbid(unsafe_code)]

mod clean;
mod connect;
mod draw;
mod ending;
mod figures;
mod numbers;
mod options;
mod plain;
mod sample;
mod screen;
mod source;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;

pub use ending::restore_terminal_at_signals;
pub use options::Options;

/// Shows the server until the user quits, or prints one frame where standard output is no terminal.
///
/// # Errors
///
/// One line that says why: no server answers, it refuses the login, or the terminal cannot be used.
pub fn run(options: &Options) -> Result<(), String> {
    if options.once || !std::io::stdout().is_terminal() {
        return plain::run(connect::Connection::open(options)?, options);
    }
    // Before a prompt for a password, which changes the terminal too.
    let end = ending::listen()?;
    screen::run(connect::Connection::open(options)?, options, &end)
}
