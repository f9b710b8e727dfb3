//! Starts the real `allcore` command for black-box tests and runs real clients against it.
#![allow(dead_code, missing_docs, reason = "each test file uses its own part")]

pub mod dice;
pub mod messages;
pub mod raw;

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running server on folders of its own; killed when dropped.
pub struct Server {
    child: Option<Child>,
    pub port: u16,
    pub folder: TempDir,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// The password that clients send if the server asks for one.
    pub password: Option<String>,
}

/// A TCP port on which nobody listens now, and which no client gets for its side of a connection.
/// So a server that is down for a while finds it free again. A listener would look too, but a
/// child that another test starts at this moment holds it until it runs its own program.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(64).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % 20_000) as u16;
        let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
        if TcpStream::connect(("127.0.0.1", port)).is_err_and(refused) {
            return port;
        }
    }
}

pub fn allcore() -> Command {
    Command::new(env!("CARGO_BIN_EXE_allcore"))
}

impl Server {
    /// A server with small defaults and `extra` arguments.
    pub fn start(extra: &[&str]) -> Self {
        Self::start_with(extra, &[])
    }

    pub fn start_with(extra: &[&str], environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self {
            child: None,
            port: free_port(),
            folder,
            arguments: extra.iter().map(|&s| s.to_owned()).collect(),
            environment: environment.iter().map(|&(n, v)| (n.to_owned(), v.to_owned())).collect(),
            password: None,
        };
        server.launch();
        server
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Sets or removes a variable of the environment for the next launch.
    pub fn environment(&mut self, name: &str, value: Option<&str>) {
        self.environment.retain(|(n, _)| n != name);
        self.environment.extend(value.map(|v| (name.to_owned(), v.to_owned())));
    }

    /// Arguments for the next launches beside the buffers, in place of those given before.
    pub fn arguments(&mut self, extra: &[&str]) {
        self.arguments = extra.iter().map(|&s| s.to_owned()).collect();
    }

    /// Starts the process and waits until it answers and its log tells of the start. A thread of
    /// its own writes the log, and may be behind.
    pub fn launch(&mut self) {
        let (old, is_quiet) = (self.log().len(), self.arguments.iter().any(|a| a == "--log-level"));
        self.launch_unready();
        let is_told = |server: &Self| is_quiet || server.log()[old..].contains("ready for connections");
        let deadline = Instant::now() + Duration::from_secs(180);
        while self.try_psql("postgres", "select 1").is_err() || !is_told(self) {
            let exited = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(
                exited.is_none() && Instant::now() < deadline,
                "the server did not start:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts the process only.
    pub fn launch_unready(&mut self) {
        let log =
            fs::OpenOptions::new().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let buffers: &[&str] =
            if self.arguments.iter().any(|a| a == "--buffers") { &[] } else { &["--buffers", "64MiB"] };
        let mut command = allcore();
        command.arg("serve").arg("--data").arg(self.data()).arg("--socket-dir").arg(self.folder.path());
        command.arg("--listen").arg(format!("127.0.0.1:{}", self.port)).args(buffers).args(&self.arguments);
        command.envs(self.environment.iter().map(|(n, v)| (n, v)));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// kill -9, as a crash.
    pub fn crash(&mut self) {
        let mut child = self.child.take().unwrap();
        // It may have killed itself at a stop point already.
        let _ = child.kill();
        child.wait().unwrap();
    }

    /// Waits for the process to end by itself (a stop point's kill).
    pub fn wait_end(&mut self, limit: Duration) -> bool {
        self.end_status(limit).is_some()
    }

    /// As [`Server::wait_end`]; how it ended.
    pub fn end_status(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.as_mut().unwrap().try_wait().unwrap() {
                self.child = None;
                return Some(status);
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGTERM and a clean end.
    pub fn stop(&mut self) {
        let mut child = self.child.take().unwrap();
        let told = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status().unwrap();
        assert!(told.success());
        let deadline = Instant::now() + Duration::from_secs(180);
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                assert!(status.success(), "stopped with {status:?} ({:?}):\n{}", status.signal(), self.log());
                return;
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                panic!("the server does not stop:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A client program told to speak to this server over TCP.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string()).env("PGUSER", "postgres");
        command.env("PGDATABASE", "postgres").env("PGCONNECT_TIMEOUT", "20").env("PGSSLMODE", "prefer");
        command.envs(self.password.iter().map(|password| ("PGPASSWORD", password))).stdin(Stdio::null());
        command
    }

    /// A client program told to use the Unix socket.
    pub fn socket_client(&self, program: &str) -> Command {
        let mut command = self.client(program);
        command.env("PGHOST", self.folder.path());
        command
    }

    fn try_psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut command = self.client("psql");
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql]);
        let output = command.output().unwrap();
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Runs SQL by psql; gives the unaligned rows.
    pub fn psql(&self, sql: &str) -> String {
        self.psql_in("postgres", sql)
    }

    pub fn psql_in(&self, database: &str, sql: &str) -> String {
        match self.try_psql(database, sql) {
            Ok(rows) => rows,
            Err(fault) => panic!("{sql}\n{fault}\nserver log:\n{}", self.log()),
        }
    }

    /// Runs SQL that must fail; gives what psql said.
    pub fn psql_error(&self, sql: &str) -> String {
        match self.try_psql("postgres", sql) {
            Ok(rows) => panic!("{sql}\nshould have failed but gave: {rows}"),
            Err(fault) => fault,
        }
    }

    /// Runs pgbench; gives what it printed.
    pub fn pgbench(&self, arguments: &[&str]) -> String {
        let mut command = self.client("pgbench");
        command.args(arguments);
        succeed(&mut command, &self.log())
    }

    /// A connection of the `postgres` driver.
    pub fn connect(&self) -> postgres::Client {
        self.try_connect().unwrap_or_else(|e| panic!("{e}\nserver log:\n{}", self.log()))
    }

    pub fn try_connect(&self) -> Result<postgres::Client, postgres::Error> {
        let settings =
            format!("host=127.0.0.1 port={} user=postgres dbname=postgres connect_timeout=20", self.port);
        postgres::Client::connect(&settings, postgres::NoTls)
    }

    /// Waits until the session of this number runs a statement: a cancel that came earlier would be
    /// forgotten.
    pub fn wait_active(&self, pid: i32) {
        let deadline = Instant::now() + Duration::from_secs(180);
        // For a while: that it was active may have been its Parse.
        let running = format!(
            "select state = 'active' and clock_timestamp() - state_change > interval '10 ms'
             from pg_stat_activity where pid = {pid}"
        );
        while self.psql(&running) != "t" {
            assert!(Instant::now() < deadline, "session {pid} runs nothing");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a statement of this session is blocked. It must be running at several looks in a
    /// row. Each look takes a new session, which takes far longer than an unblocked statement
    /// would.
    pub fn wait_standing(&self, pid: i32) {
        self.wait_active(pid);
        for _ in 0..5 {
            self.wait_active(pid);
        }
    }

    /// `allcore check` on the data folder of a server that is down: its output, which must say all
    /// is well.
    pub fn check(&self) -> String {
        assert!(self.child.is_none(), "check wants the server down");
        succeed(allcore().arg("check").arg("--data").arg(self.data()), &self.log())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A small file system mounted where a server has its data; unmounted when dropped.
pub struct SmallDisk {
    at: PathBuf,
    image: TempDir,
}

impl SmallDisk {
    pub fn mount(at: &Path, mebibytes: u64) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let image = folder.path().join("image");
        let file = fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(mebibytes << 20).map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))?;
        let disk = Self { at: at.to_owned(), image: folder };
        disk.mount_again()?;
        // A folder of data is empty to begin with.
        fs::remove_dir(at.join("lost+found")).map_err(|error| error.to_string())?;
        Ok(disk)
    }

    /// Mounts what is there, as after a reboot.
    pub fn mount_again(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.image.path().join("image")).arg(&self.at))
    }

    pub fn unmount(&self) {
        // Lazily: the server may still be there when a test fails.
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }

    /// From now on every operation on it is an I/O error (EXT4_IOC_SHUTDOWN, without writing its
    /// journal).
    pub fn break_down(&self) -> Result<(), String> {
        let script = "open(my $f, '<', $ARGV[0]) or die; my $how = pack('L', 2); ioctl($f, 0x8004587d, $how) or die $!";
        run(Command::new("perl").args(["-e", script]).arg(&self.at))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.unmount();
    }
}

/// The number of a client's session.
pub fn pid(client: &mut postgres::Client) -> i32 {
    client.query_one("select pg_backend_pid()", &[]).unwrap().get(0)
}

/// Runs a command that may not be possible here.
fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", text(&output))) }
}

/// Runs a command that must succeed; gives its output.
pub fn succeed(command: &mut Command, log: &str) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = text(&output);
    assert!(output.status.success(), "{command:?}\n{said}\nserver log:\n{log}");
    said
}

/// The standard output and the standard error of a program.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A program's path, if the machine has it.
pub fn has(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()))
}

/// The reason why the kernel refuses io_uring. Asks by system call 425, io_uring_setup, without
/// code of the server.
pub fn io_uring_refused() -> Option<String> {
    let script = r#"my $p = "\0" x 120; exit 0 if syscall(425, 8, $p) >= 0; die "$!\n""#;
    run(Command::new("perl").args(["-e", script])).err()
}

/// Prints that something cannot be tried on this machine. It bypasses the harness, which hides the
/// output of a test that succeeds. `make test` repeats these lines at its end.
pub fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}

/// A certificate for localhost signed by itself, and its key.
pub fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let (certificate, key) = (folder.join("server.crt"), folder.join("server.key"));
    let mut command = Command::new("openssl");
    command.args([
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-keyout",
    ]);
    command.arg(&key).arg("-out").arg(&certificate);
    succeed(&mut command, "");
    (certificate, key)
}
