//! A running pgbench: its lines as they come, and its end. Dropping this value ends
//! pgbench.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// A tool that runs. It is in a process group of its own: Ctrl-C reaches the lab, which ends it.
pub(super) struct Tool {
    child: Child,
    /// The kernel's figures of all its threads.
    pub(super) stat: String,
    /// The lines that it prints on its standard error; the sender is gone when the tool ends.
    pub(super) lines: Receiver<String>,
}

impl Tool {
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().display().to_string();
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("{name} is not installed (package postgresql-contrib); install it or take the native driver")
            }
            _ => format!("can't start {name}: {error}"),
        })?;
        let (sender, lines) = channel();
        let printed = child.stderr.take().expect("it is piped");
        thread::spawn(move || {
            for line in BufReader::new(printed).split(b'\n').map_while(Result::ok) {
                // The receiver is gone once the lab has given the tool up.
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        let stat = format!("/proc/{}/stat", child.id());
        Ok(Self { child, stat, lines })
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // Both fail where it has ended already, which is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
