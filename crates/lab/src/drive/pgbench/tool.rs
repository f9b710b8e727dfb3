//! A running pgbench: its lines as they come, its CPU time, and its end. Dropping this value ends
//! pgbench.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use procfs::process::Process;

use crate::record::CpuTime;

/// An event of the process.
pub(super) enum Event {
    /// It has printed a line, on either stream.
    Line(String),
    /// It printed nothing for a while.
    Nothing,
    /// It has closed its output: it ends.
    End,
}

/// A tool that runs. It is in a process group of its own: Ctrl-C reaches the lab, which ends it.
pub(super) struct Tool {
    child: Child,
    lines: Receiver<String>,
}

impl Tool {
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        let name = command.get_program().display().to_string();
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("{name} is not installed (package postgresql-contrib); install it or take the native driver")
            }
            _ => format!("can't start {name}: {error}"),
        })?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            forward(output, sender.clone());
        }
        if let Some(errors) = child.stderr.take() {
            forward(errors, sender);
        }
        Ok(Self { child, lines })
    }

    /// The next event, or [`Event::Nothing`] after a while.
    pub(super) fn next(&self, within: Duration) -> Event {
        match self.lines.recv_timeout(within) {
            Ok(line) => Event::Line(line),
            Err(RecvTimeoutError::Timeout) => Event::Nothing,
            Err(RecvTimeoutError::Disconnected) => Event::End,
        }
    }

    /// CPU time of all its threads so far.
    pub(super) fn cpu(&self) -> CpuTime {
        let times = i32::try_from(self.child.id()).ok().and_then(|id| Process::new(id).ok()?.stat().ok());
        let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
        times.map_or(CpuTime::default(), |times| CpuTime {
            user: seconds(times.utime),
            system: seconds(times.stime),
        })
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // Both fail where it has ended already, which is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends each line of a stream on; ends with the stream.
fn forward(from: impl Read + Send + 'static, to: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            // The receiver is gone once the lab has given the tool up.
            if to.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
}

pub(super) fn between(from: CpuTime, to: CpuTime) -> CpuTime {
    CpuTime { user: to.user - from.user, system: to.system - from.system }
}
