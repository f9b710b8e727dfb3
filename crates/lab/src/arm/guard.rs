//! The guard stops a server that the lab started and removes its folder. It does so however the lab
//! ends: regularly, by an error, a panic, a signal, or kill -9.
//!
//! A small shell waits on a pipe whose other end only the lab holds. The pipe closes when the lab
//! closes it or dies. Then the shell asks the server to stop, waits 30 s, kills it, and removes the
//! folder. The shell kills an installation program, and everything that program started, at once.
//! The shell and these programs have process groups of their own, so that Ctrl-C on the terminal
//! reaches the lab alone. Before its group is its own, Ctrl-C may still kill the shell, so the lab
//! starts nothing until the shell has answered. If another process kills the shell later, the lab
//! itself stops the server and removes the folder.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(super) use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};

/// Time for a server to stop before the lab kills it; [`SCRIPT`] waits as long.
const STOP: Duration = Duration::from_secs(30);

/// Time for [`SCRIPT`] to stop the server and to remove the folder.
const ALL: Duration = Duration::from_secs(60);

/// Arguments: the folder, the signal's number. The last line of its input counts: `installer` or
/// `server` with a process's id, or `ended`. It is `ended` once that process has ended: another one
/// may have its id by then. The shell removes the folder until it stays away: a killed process may
/// still write for a moment.
const SCRIPT: &str = r#"
trap '' INT TERM HUP
echo ready
exec >&-
what= process=
while read -r word id; do
    what=$word process=$id
done
tenths=0
case $what in
installer)
    kill -s KILL -- "-$process"
    ;;
server)
    kill "-$2" "$process"
    while kill -0 "$process" && [ "$tenths" -lt 300 ]; do
        sleep 0.1
        tenths=$((tenths + 1))
    done
    kill -s KILL "$process"
    ;;
esac
tenths=0
until rm -rf "$1" && sleep 0.1 && [ ! -e "$1" ] || [ "$tenths" -ge 100 ]; do
    tenths=$((tenths + 1))
done
"#;

#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
    /// The shell acts when this end closes.
    pipe: Option<ChildStdin>,
    server: Option<Child>,
    folder: PathBuf,
    signal: Signal,
}

impl Guard {
    /// Guards a folder from now on, and the server that will run in it. `signal` stops that server.
    pub(super) fn new(folder: &Path, signal: Signal) -> Result<Self, String> {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", SCRIPT, "allcore-bench-guard"])
            .arg(folder)
            .arg(signal.as_raw().to_string())
            .current_dir("/")
            .process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = shell.spawn().map_err(|error| format!("can't start sh: {error}"))?;
        let (pipe, mut said) = (shell.stdin.take(), String::new());
        let read = shell.stdout.take().map(|mut answer| answer.read_to_string(&mut said));
        let guard = Self { shell, pipe, server: None, folder: folder.to_owned(), signal };
        match read {
            Some(Ok(1..)) => Ok(guard),
            _ => Err("sh, which guards its server, ended at its start".into()),
        }
    }

    /// Runs a program that makes the server's data, until it ends.
    pub(super) fn run(&mut self, command: &mut Command) -> Result<Output, String> {
        let program = command.get_program().to_owned();
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let installer = command.spawn();
        let installer = installer.map_err(|error| format!("can't start {}: {error}", program.display()))?;
        let told = self.tell(&format!("installer {}", installer.id()));
        told.inspect_err(|_| signal_group(&installer, Signal::KILL))?;
        let output = installer.wait_with_output();
        self.tell("ended")?;
        output.map_err(|error| format!("can't wait for {}: {error}", program.display()))
    }

    pub(super) fn start(&mut self, command: &mut Command) -> Result<(), String> {
        let program = command.get_program().to_owned();
        let server = command.process_group(0).spawn();
        let server = server.map_err(|error| format!("can't start {}: {error}", program.display()))?;
        let id = server.id();
        self.server = Some(server);
        self.tell(&format!("server {id}"))
    }

    fn tell(&mut self, line: &str) -> Result<(), String> {
        let told = self.pipe.as_mut().map_or(Ok(()), |pipe| writeln!(pipe, "{line}"));
        told.map_err(|error| format!("can't tell the guard of its server: {error}"))
    }

    /// The server's process id, while it runs.
    pub(super) fn server(&mut self) -> Option<u32> {
        let server = self.server.as_mut()?;
        match server.try_wait() {
            Ok(None) => Some(server.id()),
            _ => None,
        }
    }

    /// Stops a server that still runs, as the shell does.
    fn stop_server(&mut self) {
        if self.server().is_none() {
            return;
        }
        self.server.iter().for_each(|server| signal_group(server, self.signal));
        let until = Instant::now() + STOP;
        while self.server().is_some() && Instant::now() < until {
            sleep(Duration::from_millis(10));
        }
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.server.as_mut()?.try_wait().ok().flatten()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.server().is_none() {
            // This fails only if the shell is gone; then no one needs the message.
            let _ = self.tell("ended");
        }
        drop(self.pipe.take());
        let until = Instant::now() + ALL;
        // Reap the server, too: the shell waits until its process is gone.
        while matches!(self.shell.try_wait(), Ok(None)) && Instant::now() < until {
            let _ = self.server();
            sleep(Duration::from_millis(10));
        }
        // This finds nothing to do unless the shell was killed or hangs.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        self.stop_server();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Signals a process and those of its group; the process is not yet reaped.
fn signal_group(leader: &Child, signal: Signal) {
    // This fails only if they all have ended.
    let _ = kill_process_group(Pid::from_child(leader), signal);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("600");
        command
    }

    fn guarded() -> (std::path::PathBuf, Guard) {
        let folder = tempfile::tempdir().unwrap().keep();
        let guard = Guard::new(&folder, Signal::TERM).unwrap();
        (folder, guard)
    }

    fn is_there(process: u32) -> bool {
        // A process that has ended and is not yet reaped counts as gone.
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        state.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    }

    /// Whether a process ends within 60 s: a process that got a signal ends in its own time.
    fn goes(process: u32) -> bool {
        crate::tests::wait_until(|| !is_there(process));
        !is_there(process)
    }

    #[test]
    fn a_dropped_guard_stops_the_server_and_removes_the_folder() {
        for program in [Some(sleeper()), Some(Command::new("true")), None] {
            let (folder, mut guard) = guarded();
            let server = program.map(|mut program| {
                guard.start(&mut program).unwrap();
                if program.get_program() == "true" {
                    crate::tests::wait_until(|| guard.server().is_none());
                }
                guard.server.as_ref().unwrap().id()
            });
            assert!(folder.exists());
            drop(guard);
            assert!(!server.is_some_and(is_there) && !folder.exists());
        }
    }

    #[test]
    fn a_server_whose_guard_was_killed_is_stopped_by_the_lab() {
        let (folder, mut guard) = guarded();
        guard.start(&mut sleeper()).unwrap();
        let server = guard.server().unwrap();
        guard.shell.kill().unwrap();
        guard.shell.wait().unwrap();
        drop(guard);
        assert!(!is_there(server) && !folder.exists());
    }

    #[test]
    fn signals_of_a_terminal_do_not_end_a_guard() {
        let (folder, mut guard) = guarded();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
            signal_group(&guard.shell, signal);
        }
        // An ended shell would not read it.
        drop(guard.pipe.take());
        assert!(guard.shell.wait().unwrap().success());
        assert!(!folder.exists());
    }

    #[test]
    fn a_lab_that_is_killed_leaves_nothing_behind() {
        let (folder, mut guard) = guarded();
        guard.start(&mut sleeper()).unwrap();
        let server = guard.server().unwrap();
        // Do as the kernel does for a killed process: it closes the pipe and runs none of its code.
        drop(guard.pipe.take());
        assert!(goes(server), "the server still runs");
        // This reaps the server, as init does for a killed lab; only then the shell sees its end.
        drop(guard);
        assert!(!folder.exists());
    }

    #[test]
    fn a_lab_that_is_killed_while_data_is_made_leaves_nothing_behind() {
        let (folder, mut guard) = guarded();
        // This stands for an installation script: a child of its own writes, as fast as it can.
        let mut installer = Command::new("sh");
        let script = r#"while :; do mkdir -p "$0/data"; echo x > "$0/data/$((n += 1))"; done & echo $! > "$0.pid"; wait"#;
        installer.args(["-c", script]).arg(&folder).process_group(0);
        let mut installer = installer.spawn().unwrap();
        guard.tell(&format!("installer {}", installer.id())).unwrap();
        let pid = folder.with_extension("pid");
        let read = || std::fs::read_to_string(&pid).unwrap_or_default().trim().parse::<u32>().ok();
        crate::tests::wait_until(|| read().is_some());
        let child = read().unwrap();
        assert!(is_there(child));
        // The child writes without end until the shell kills the group.
        drop(guard.pipe.take());
        let _ = guard.shell.wait();
        assert!(!folder.exists());
        assert!(goes(child), "what the installer has started still runs");
        installer.wait().unwrap();
        std::fs::remove_file(pid).unwrap();
    }

    #[test]
    fn an_installer_is_waited_for_and_its_messages_are_kept() {
        let (folder, mut guard) = guarded();
        let output = guard.run(Command::new("sh").args(["-c", "echo no >&2; exit 3"])).unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(3), b"no\n".to_vec()));
        assert!(guard.run(&mut Command::new("/nowhere/initdb")).unwrap_err().contains("/nowhere/initdb"));
        drop(guard);
        assert!(!folder.exists());
    }
}
