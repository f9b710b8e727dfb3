//! The time limit of a login: one limit for all of it, from the moment when the client was
//! accepted.
#![allow(missing_docs, reason = "a test")]

use runtime::net::{Address, Bound};
use server::{Options, Policy, Server};
use sql::database::Database;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_millis(500);

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn connect(path: &Path) -> UnixStream {
    let socket = UnixStream::connect(path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// All that the server sends until it closes. If the server closed with a byte unread, the stream
/// ends with `ECONNRESET`, after everything that was sent.
fn last_words(mut socket: UnixStream) -> String {
    let mut said = Vec::new();
    if let Err(error) = socket.read_to_end(&mut said) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn startup() -> Vec<u8> {
    let parameters = b"user\0postgres\0application_name\0takes its time\0\0";
    let mut bytes = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend(196_608u32.to_be_bytes());
    bytes.extend(parameters);
    bytes
}

#[test]
fn the_server_closes_a_client_that_does_not_log_in() {
    let folder = Folder(std::env::temp_dir().join(format!("allcore-login-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&folder.0);
    std::fs::create_dir(&folder.0).unwrap();
    let database = Database::open(&folder.0.join("data"), sql::database::Options::default()).unwrap();
    let path = folder.0.join("socket");
    let places = vec![Bound::new(Address::Unix { path: path.clone(), mode: 0o700 }).unwrap()];
    let policy = Policy { login_limit: LIMIT, ..Policy::default() };
    let options = Options { places, policy };
    let server = Server::start(database.clone(), options).unwrap();

    // A client that is in has no limit.
    let mut inside = connect(&path);
    inside.write_all(&startup()).unwrap();
    let silent = connect(&path);
    let mut slow = connect(&path);
    let begun = Instant::now();
    for byte in startup() {
        std::thread::sleep(LIMIT / 5);
        if slow.write_all(&[byte]).is_err() {
            break;
        }
    }
    assert!(begun.elapsed() > LIMIT, "the packet is too short for this test");
    for socket in [silent, slow] {
        let said = last_words(socket);
        assert!(said.contains("C57014") && said.contains("authentication due to timeout"), "{said:?}");
    }
    inside.write_all(b"Q\0\0\0\x0eselect 42\0X\0\0\0\x04").unwrap();
    assert!(last_words(inside).contains("42"));
    server.stop();
    database.shutdown().unwrap();
}
