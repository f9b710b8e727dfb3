//! `allcore top` in a pseudo-terminal, and without one.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::common::{Server, allcore, free_port, text};
use crate::entrance::guarded;
use crate::metrics;

/// A program in a terminal of its own.
struct Terminal {
    child: Child,
    /// The side of the user.
    user: File,
    /// The side of the program. It stays open, so that the terminal outlives the program.
    program: OwnedFd,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// `allcore top` of a server.
    fn start(columns: u16, rows: u16, server: &Server, arguments: &[&str]) -> Self {
        let port = server.port.to_string();
        Self::run(columns, rows, &[&["top", "--port", &port], arguments].concat())
    }

    /// A command of `allcore`.
    fn run(columns: u16, rows: u16, arguments: &[&str]) -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap().into_string().unwrap();
        let program = File::options().read(true).write(true).open(name).unwrap();
        // The terminal controls the program's session, so that a resize is a signal to it.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(env!("CARGO_BIN_EXE_allcore"));
        command.args(arguments).env("TERM", "xterm").env_remove("PGPASSWORD");
        let side = || Stdio::from(program.try_clone().unwrap());
        resize(&user, columns, rows);
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let parser = vt100::Parser::new(cells(rows), cells(columns), 0);
        let seen = Arc::new(Mutex::new(Seen { parser, bytes: Vec::new() }));
        let (mut output, into) = (File::from(user.try_clone().unwrap()), seen.clone());
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let mut seen = into.lock().unwrap();
                seen.parser.process(&buffer[..length]);
                seen.bytes.extend_from_slice(&buffer[..length]);
            }
        });
        Self { child, user: File::from(user), program: program.into(), seen }
    }

    fn press(&mut self, keys: &str) {
        self.user.write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&self, columns: u16, rows: u16) {
        self.seen.lock().unwrap().parser.screen_mut().set_size(cells(rows), cells(columns));
        resize(&self.user, columns, rows);
    }

    fn screen(&self) -> String {
        self.seen.lock().unwrap().parser.screen().contents()
    }

    /// Waits until the screen is as wanted, and returns it.
    fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "the screen has no {what}:\n{screen}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits for a prompt that hides the password. The echo goes after the prompt has come.
    fn wait_for_prompt(&self, prompt: &str, modes: &str) {
        self.wait(prompt, |screen| screen.contains(prompt.trim()) && self.modes() != modes);
    }

    fn signal(&self, name: &str) {
        let told = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
    }

    fn modes(&self) -> String {
        let Termios { input_modes, output_modes, local_modes, .. } = tcgetattr(&self.program).unwrap();
        format!("{input_modes:?} {output_modes:?} {local_modes:?}")
    }

    /// Waits for the end with one of these statuses, and checks that the terminal is as it was.
    fn end(mut self, modes: &str, codes: &[i32]) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "allcore top does not end:\n{}", self.screen()),
            }
            thread::sleep(Duration::from_millis(10));
        };
        assert!(status.code().is_some_and(|code| codes.contains(&code)), "{status:?}\n{}", self.screen());
        assert_eq!(self.modes(), modes);
        // The reader may be behind.
        while self.seen.lock().unwrap().parser.screen().alternate_screen() {
            assert!(Instant::now() < deadline, "the other screen stays");
            thread::sleep(Duration::from_millis(10));
        }
        self.wait("cursor", |_| !self.seen.lock().unwrap().parser.screen().hide_cursor());
    }
}

/// Cells of the test's own terminal, which is not as large as a program may be told.
fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count.clamp(1, 500)).unwrap()
}

fn resize(side: impl std::os::fd::AsFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(side, size).unwrap();
}

/// The modes of a terminal that no program has changed.
fn fresh_modes(server: &Server) -> String {
    let mut terminal = Terminal::start(80, 24, server, &["--help"]);
    terminal.child.wait().unwrap();
    terminal.modes()
}

#[test]
fn a_user_sees_sessions_opens_one_resizes_and_quits() {
    let mut server = Server::start(&[]);
    let mut hostile = server.connect();
    hostile.batch_execute("begin; select 'a\u{1b}]0;title\u{7}b'").unwrap();
    let modes = fresh_modes(&server);
    let mut terminal = Terminal::start(100, 30, &server, &["--interval", "200ms"]);
    let screen = terminal.wait_for("commits");
    assert!(screen.contains("cores         ") && screen.contains("idle in tran"), "{screen}");
    assert!(screen.contains("not profiled") && screen.contains("of 8,192 frames"), "{screen}");

    server.psql("select allcore_lock_profile_enable()");
    terminal.wait_for("waited/s*");
    terminal.press("sl");
    terminal.wait_for("transaction*");
    terminal.wait_for("held/s*");
    terminal.press("\r");
    let screen = terminal.wait_for("select 'a?]0;title?b'");
    assert!(screen.contains("session ") && screen.contains("wait event"), "{screen}");
    drop(hostile);
    terminal.wait_for("it has ended");
    terminal.press("\u{1b}");
    terminal.wait_for("waited/s");

    terminal.resize(40, 10);
    let is_low = |screen: &str| screen.lines().count() == 10 && screen.contains("pid ");
    terminal.wait("low frame", |screen| is_low(screen) && screen.contains("q quit"));
    terminal.resize(1, 1);
    terminal.resize(100, 30);
    terminal.wait_for("waited/s");

    server.crash();
    terminal.wait_for("trying again");
    server.launch();
    terminal.wait("end of the trouble", |screen| screen.contains("commits") && !screen.contains("trying"));
    let bytes = terminal.seen.lock().unwrap().bytes.clone();
    assert!(
        !bytes.windows(4).any(|part| part == b"\x1b]0;"),
        "an escape sequence of a statement came through"
    );
    terminal.press("q");
    terminal.end(&modes, &[0]);
}

#[test]
fn a_key_opens_the_hardware_counters_and_nothing_else_does() {
    let port = free_port();
    let server = Server::start(&["--cores", "1", "--metrics", &format!("127.0.0.1:{port}")]);
    let modes = fresh_modes(&server);
    let mut terminal = Terminal::start(120, 30, &server, &["--interval", "200ms"]);
    let screen = terminal.wait_for("commits");
    assert!(screen.contains("c counters") && !screen.contains("ipc"), "{screen}");
    assert!(!metrics::page(port).contains("allcore_counters_total"), "nobody has pressed a key");
    terminal.press("c");
    // The cores' line has a figure, or a dash where this machine counts nothing.
    terminal.wait("counters of the core and of all", |screen| screen.matches("ipc ").count() == 2);
    let granted = "select count(page_faults) from allcore_counters where core is not null";
    let is_counted = server.psql(granted) == "1";
    assert_eq!(metrics::page(port).contains("allcore_counters_total"), is_counted);
    terminal.press("c");
    terminal.wait("end of the counters", |screen| !screen.contains("ipc"));
    terminal.press("q");
    terminal.end(&modes, &[0]);
}

#[test]
fn ctrl_c_and_a_signal_put_the_terminal_back() {
    let server = Server::start(&[]);
    let modes = fresh_modes(&server);
    let mut terminal = Terminal::start(80, 24, &server, &[]);
    terminal.wait_for("transactions");
    terminal.press("\u{3}");
    terminal.end(&modes, &[0]);

    for signal in ["-TERM", "-INT", "-HUP", "-QUIT"] {
        let terminal = Terminal::start(80, 24, &server, &[]);
        terminal.wait_for("transactions");
        terminal.signal(signal);
        terminal.end(&modes, &[0]);
    }

    // The library reads on for the rest of an escape sequence, and looks at nothing else.
    let mut terminal = Terminal::start(80, 24, &server, &[]);
    terminal.wait_for("transactions");
    terminal.press("\u{1b}[");
    thread::sleep(Duration::from_millis(300));
    terminal.signal("-TERM");
    terminal.end(&modes, &[0, 128 + 15]);
}

#[test]
fn a_signal_at_a_prompt_for_a_password_puts_the_terminal_back() {
    let server = Server::start(&[]);
    let modes = fresh_modes(&server);
    // A server that asks each client for a password in clear text, and says nothing more.
    let asking = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = asking.local_addr().unwrap().port().to_string();
    thread::spawn(move || {
        for client in asking.incoming() {
            let mut client = client.unwrap();
            let startup = client.read(&mut [0; 1024]).unwrap();
            assert!(startup > 0);
            client.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
            thread::spawn(move || client.read(&mut [0; 1024]));
        }
    });
    let data = server.data();
    let commands: [(&[&str], &str); 2] = [
        (&["top", "--port", &port], "Password for postgres: "),
        (&["passwd", "postgres", "--data", data.to_str().unwrap()], "New password for postgres: "),
    ];
    for (command, prompt) in commands {
        for (signal, number) in [("-HUP", 1), ("-INT", 2), ("-QUIT", 3), ("-TERM", 15)] {
            let terminal = Terminal::run(80, 24, command);
            terminal.wait_for_prompt(prompt, &modes);
            terminal.signal(signal);
            terminal.end(&modes, &[128 + number]);
        }
    }
}

#[test]
fn a_key_after_a_signal_sets_no_password() {
    let server = Server::start(&[]);
    let modes = fresh_modes(&server);
    let data = server.data();
    let mut terminal = Terminal::run(80, 24, &["passwd", "postgres", "--data", data.to_str().unwrap()]);
    terminal.wait_for_prompt("New password for postgres: ", &modes);
    terminal.press("secret\n");
    terminal.wait_for_prompt("Once more: ", &modes);
    terminal.press("secret");
    terminal.signal("-INT");
    // The loop of a screen would have 500 ms.
    thread::sleep(Duration::from_millis(200));
    terminal.press("\n");
    terminal.end(&modes, &[128 + 2]);
    assert!(!data.join("passwords").exists(), "no password is set");
}

#[test]
fn a_terminal_of_any_size_has_a_frame() {
    let server = Server::start(&[]);
    let modes = fresh_modes(&server);
    for (columns, rows) in [(30_000, 30_000), (u16::MAX, u16::MAX), (u16::MAX, 1), (0, 0), (0, 24), (1, 1)] {
        let mut terminal = Terminal::start(columns, rows, &server, &["--interval", "200ms"]);
        terminal.wait("frame", |_| terminal.seen.lock().unwrap().parser.screen().alternate_screen());
        terminal.resize(80, 24);
        terminal.wait_for("transactions");
        terminal.resize(columns, rows);
        thread::sleep(Duration::from_millis(300));
        terminal.resize(100, 30);
        terminal.wait("larger frame", |screen| screen.lines().count() == 30 && screen.contains("q quit"));
        terminal.press("q");
        terminal.end(&modes, &[0]);
    }
}

#[test]
fn an_output_that_is_closed_ends_the_program() {
    let server = Server::start(&[]);
    let shell = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line, env!("CARGO_BIN_EXE_allcore"), &server.port.to_string()]);
        command.stdin(Stdio::null()).output().unwrap()
    };
    for line in [
        r#""$0" top --once --interval 100ms --port "$1" | true"#,
        r#""$0" top --interval 100ms --port "$1" >&-"#,
        r#""$0" top --interval 100ms --port "$1" >&- 2>&-"#,
    ] {
        let output = shell(line);
        assert!(output.status.success() && text(&output).is_empty(), "{line}: {}", text(&output));
    }
}

#[test]
fn without_a_terminal_one_frame_is_printed() {
    let server = Server::start(&[]);
    let port = server.port.to_string();
    let output = allcore().args(["top", "--port", &port, "--interval", "1s"]).output().unwrap();
    let shown = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", text(&output));
    // Nobody works, and the program leaves out its own transactions.
    assert!(shown.contains(" transactions  0/s: 0 commits, 0 rollbacks; round trip "), "{shown}");
    assert!(
        shown.contains(" cores ") && shown.contains(" durable to ") && !shown.contains('\u{1b}'),
        "{shown}"
    );
    let folder = server.folder.path().to_str().unwrap();
    let output = allcore()
        .args(["top", "--once", "--host", folder, "--port", &port, "--interval", "100ms"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    // The kernel accepts for it.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let output =
        allcore().args(["top", "--once", "--port", &port]).env("PGCONNECT_TIMEOUT", "1").output().unwrap();
    let refusal = text(&output);
    assert!(!output.status.success() && refusal.lines().count() == 1, "{refusal}");
    let expected = format!("cannot connect to 127.0.0.1:{port}: the server says nothing for 1 s");
    assert!(refusal.contains(&expected), "{refusal}");
}

#[test]
fn a_refusal_is_one_line() {
    let port = free_port().to_string();
    let output = allcore().args(["top", "--port", &port]).output().unwrap();
    let refusal = text(&output);
    assert!(!output.status.success() && refusal.lines().count() == 1, "{refusal}");
    assert!(
        refusal.contains(&format!("cannot connect to 127.0.0.1:{port}: Connection refused")),
        "{refusal}"
    );

    let server = Server::start(&[]);
    let port = server.port.to_string();
    let output = allcore().args(["top", "--port", &port, "--dbname", "missing\u{1b}c"]).output().unwrap();
    let refusal = text(&output);
    assert!(!output.status.success() && !refusal.contains('\u{1b}'), "{refusal}");
    assert!(refusal.contains("database \"missing?c\" does not exist (3D000)"), "{refusal}");
}

/// Output of one frame of a server at this port that fails.
fn refused(port: u16) -> String {
    let mut command = allcore();
    command.args(["top", "--once", "--port", &port.to_string()]).env_remove("PGPASSWORD");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let refusal = text(&output);
    assert!(!output.status.success() && refusal.lines().count() == 1, "{refusal}");
    refusal
}

#[test]
fn a_missing_password_and_a_server_of_another_kind_are_named() {
    let server = guarded(&[]);
    let refusal = refused(server.port);
    let advice = "the server asks for a password: set PGPASSWORD, or run this on a terminal";
    assert!(refusal.contains(advice), "{refusal}");

    // Each answers the first message alike: a web server, and a server without Allcore's views.
    let mut absent = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I".to_vec();
    let fields = b"SERROR\0VERROR\0C42P01\0Mrelation \"allcore_workers\" does not exist\0\0";
    absent.push(b'E');
    absent.extend((fields.len() as u32 + 4).to_be_bytes());
    absent.extend(fields);
    absent.extend(b"Z\0\0\0\x05I");
    let web = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec();
    for (answer, advice) in [
        (Vec::new(), "the server closed the connection during the login"),
        (web, "the server does not speak PostgreSQL's protocol"),
        (absent, "is no Allcore server of this version: relation \"allcore_workers\" does not exist (42P01)"),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut bytes = [0; 1024];
            assert!(socket.read(&mut bytes).unwrap() > 0);
            socket.write_all(&answer).unwrap();
            socket.shutdown(std::net::Shutdown::Write).unwrap();
            while socket.read(&mut bytes).is_ok_and(|read| read > 0) {}
        });
        let refusal = refused(port);
        assert!(refusal.contains(advice), "{refusal}");
        other.join().unwrap();
    }
}
