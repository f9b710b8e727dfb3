//! Shares: no holder keeps others out, whatever it leaves open or unread. A holder is a user of the
//! machine over the Unix socket, or all of loopback.

use crate::common::raw::{Said, startup};
use crate::common::{Server, skip, text};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
/// Users of the machine that need not have a name.
const GREEDY: u32 = 54_321;
const OTHER: u32 = 54_322;

/// Runs `body` on a thread that is this user's: the kernel tells the server of it.
fn as_user<T: Send>(user: u32, body: impl FnOnce() -> T + Send) -> T {
    let thread = || {
        let user = rustix::thread::Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user).unwrap();
        body()
    };
    std::thread::scope(|scope| scope.spawn(thread).join().unwrap())
}

/// A server whose Unix socket others can reach; none where this test may not become other users.
fn open_to_all(extra: &[&str]) -> Option<Server> {
    if !rustix::process::geteuid().is_root() {
        skip("shares of users: only root can connect as several");
        return None;
    }
    let server = Server::start(extra);
    fs::set_permissions(server.folder.path(), Permissions::from_mode(0o711)).unwrap();
    Some(server)
}

fn path(server: &Server) -> PathBuf {
    server.folder.path().join(format!(".s.PGSQL.{}", server.port))
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// Reads messages up to one of a type; the type of the last one, 0 where the connection ends.
fn read_until(socket: &mut UnixStream, kind: u8) -> u8 {
    let mut head = [0; 5];
    let mut last = 0;
    while last != kind {
        if socket.read_exact(&mut head).is_err() {
            return last;
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        socket.read_exact(&mut vec![0; length as usize - 4]).unwrap();
        last = head[0];
    }
    last
}

/// A session over the Unix socket; none where it is refused or has to wait.
fn session(server: &Server) -> Option<UnixStream> {
    let (socket, is_in) = attempt(server, "ada");
    is_in.then_some(socket)
}

/// A connection over the Unix socket, and whether its session was opened.
fn attempt(server: &Server, role: &str) -> (UnixStream, bool) {
    let mut socket = UnixStream::connect(path(server)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.write_all(&startup(role, "postgres")).unwrap();
    let is_in = read_until(&mut socket, b'Z') == b'Z';
    (socket, is_in)
}

/// Ends a session with a result that nobody has read.
fn end_unread(socket: &mut UnixStream) {
    let asked = [message(b'Q', b"select repeat('x', 57000)\0"), message(b'X', b"")].concat();
    socket.write_all(&asked).unwrap();
}

/// Takes all that a user can have: sessions that ended unread, and connections that say nothing.
fn take_all(server: &Server) -> Vec<UnixStream> {
    let mut kept = Vec::new();
    // Sessions that are all open before the first ends, then one by one.
    let mut open: Vec<UnixStream> = std::iter::from_fn(|| session(server)).take(30).collect();
    open.iter_mut().for_each(end_unread);
    kept.append(&mut open);
    while let Some(mut socket) = session(server) {
        end_unread(&mut socket);
        kept.push(socket);
        assert!(kept.len() < 1000, "nothing bounds what a user has");
    }
    kept.extend((0..200).map(|_| UnixStream::connect(path(server)).unwrap()));
    kept
}

/// The output of psql as this user, over the Unix socket. It must get in at once.
fn psql_as(server: &Server, user: u32, name: &str) -> String {
    let mut command: Command = server.socket_client("psql");
    command.uid(user).current_dir("/").env("PGUSER", name);
    let begun = Instant::now();
    let said = text(&command.args(["-X", "-A", "-t", "-c", "select 'in'"]).output().unwrap());
    assert!(begun.elapsed() < Duration::from_secs(10), "{said} after {:?}", begun.elapsed());
    said.trim().to_owned()
}

#[test]
fn ended_sessions_and_silent_connections_of_a_user_keep_nobody_else_out() {
    let Some(server) = open_to_all(&["--max-connections", "40", "--max-logins", "40"]) else { return };
    let kept = as_user(GREEDY, || take_all(&server));
    assert!(psql_as(&server, GREEDY, "ada").contains("sorry, too many clients already"));
    assert_eq!(psql_as(&server, OTHER, "ada"), "in");
    assert_eq!(psql_as(&server, 0, "postgres"), "in");
    assert_eq!(server.psql("select 'in'"), "in");
    // Its share is its own again when it reads.
    for mut socket in kept {
        socket.set_nonblocking(true).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    }
    let deadline = Instant::now() + LIMIT;
    while psql_as(&server, GREEDY, "ada") != "in" {
        assert!(Instant::now() < deadline, "places are not given back");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn sessions_of_a_user_leave_the_reserved_places_even_when_they_have_ended() {
    // A share of one place: all other ended sessions keep those of sessions.
    let Some(server) = open_to_all(&["--max-connections", "20", "--max-logins", "2"]) else { return };
    let mut kept = as_user(GREEDY, || std::iter::from_fn(|| session(&server)).collect::<Vec<_>>());
    assert_eq!(kept.len(), 17);
    kept.iter_mut().for_each(end_unread);
    let deadline = Instant::now() + LIMIT;
    while server.psql("select count(*) from pg_stat_activity where usename = 'ada'") != "0" {
        assert!(Instant::now() < deadline, "sessions do not end");
    }
    assert!(psql_as(&server, GREEDY, "ada").contains("sorry, too many clients already"));
    let _silent: Vec<UnixStream> =
        as_user(GREEDY, || (0..200).map(|_| UnixStream::connect(path(&server)).unwrap()).collect());
    assert_eq!(psql_as(&server, 0, "postgres"), "in");
    assert_eq!(psql_as(&server, OTHER, "postgres"), "in");
    // One has found room among those on their way in, and its session's place is free. The sessions
    // before this one may still be on their way out.
    while psql_as(&server, OTHER, "ada") != "in" {
        assert!(Instant::now() < deadline, "no place was given back");
    }
}

#[test]
fn silent_connections_over_loopback_keep_no_user_of_the_machine_out() {
    let Some(server) = open_to_all(&["--max-connections", "10", "--max-logins", "10"]) else { return };
    let silent: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    let mut one_more = Said::connect(server.port);
    one_more.send(&startup("postgres", "postgres"));
    assert_eq!(Said::code(&one_more.until_end()), Some("53300".to_owned()));
    assert_eq!(psql_as(&server, OTHER, "ada"), "in");
    assert_eq!(psql_as(&server, 0, "postgres"), "in");
    drop(silent);
}

/// Opens 25 sessions of a role, some of which are refused and stay open, and ends those that are
/// in, unread.
fn end_all_at_once(server: &Server, role: &str) -> (usize, Vec<UnixStream>) {
    let attempts = as_user(GREEDY, || (0..25).map(|_| attempt(server, role)).collect::<Vec<_>>());
    let mut count = 0;
    let mut kept = Vec::new();
    for (mut socket, is_in) in attempts {
        if is_in {
            count += 1;
            let asked = [message(b'Q', b"select repeat('x', 20000)\0"), message(b'X', b"")].concat();
            socket.write_all(&asked).unwrap();
        }
        kept.push(socket);
    }
    (count, kept)
}

#[test]
fn sessions_that_end_all_at_once_unread_keep_no_other_user_out() {
    for (role, count) in [("ada", 17), ("postgres", 20)] {
        let Some(server) = open_to_all(&["--max-connections", "20", "--max-logins", "8"]) else { return };
        let (entered, kept) = end_all_at_once(&server, role);
        assert_eq!(entered, count, "{role}");
        // The refused fill the share for the second that they linger.
        let deadline = Instant::now() + LIMIT;
        while psql_as(&server, OTHER, "ada") != "in" {
            assert!(Instant::now() < deadline, "the places of {role} are not given back");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(psql_as(&server, OTHER, "postgres"), "in");
        assert_eq!(psql_as(&server, 0, "postgres"), "in");
        assert_eq!(server.psql("select 'in'"), "in");
        assert!(psql_as(&server, GREEDY, role).contains("sorry, too many clients already"));
        drop(kept);
    }
}

#[test]
fn sessions_that_end_while_the_share_is_filled_leave_others_places() {
    for (role, count) in [("ada", 17), ("postgres", 20)] {
        let Some(server) = open_to_all(&["--max-connections", "20", "--max-logins", "8"]) else { return };
        let mut sessions: Vec<UnixStream> =
            as_user(GREEDY, || (0..count).map(|_| attempt(&server, role).0).collect());
        let silent: Vec<UnixStream> =
            as_user(GREEDY, || (0..4).map(|_| UnixStream::connect(path(&server)).unwrap()).collect());
        sessions.iter_mut().for_each(end_unread);
        let deadline = Instant::now() + LIMIT / 2;
        while psql_as(&server, OTHER, "ada") != "in" {
            assert!(Instant::now() < deadline, "sessions of {role} keep places until the silent are gone");
        }
        assert_eq!(psql_as(&server, OTHER, "postgres"), "in");
        assert_eq!(psql_as(&server, 0, "postgres"), "in");
        drop(silent);
    }
}

#[test]
fn silent_connections_of_root_keep_nobody_out() {
    let Some(server) = open_to_all(&["--max-connections", "20", "--max-logins", "8"]) else { return };
    for count in [10, 200] {
        let silent: Vec<UnixStream> =
            (0..count).map(|_| UnixStream::connect(path(&server)).unwrap()).collect();
        assert_eq!(server.psql("select 'in'"), "in");
        assert_eq!(psql_as(&server, OTHER, "ada"), "in");
        drop(silent);
    }
}
