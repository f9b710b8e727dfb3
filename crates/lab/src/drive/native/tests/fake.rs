//! A PostgreSQL server of a few lines, whose answers a test decides.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use sync::atomic::{AtomicUsize, Ordering};

use crate::arm::{Address, Dialect, Target};
use crate::drive::wire_pg::tests::message;

/// The server's reaction to a statement.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Returns a row with the number 42.
    Row,
    /// Answers this error.
    Error(&'static [u8; 5]),
    /// Answers this error and closes the connection.
    Fatal(&'static [u8; 5]),
    /// Closes the connection.
    Close,
    /// Returns the row after this time.
    After(Duration),
    /// Returns a row of this many bytes, in pieces.
    Long(usize),
}

/// A request as the server sees it.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The connection's number.
    pub connection: usize,
    /// The number of statements executed on it before.
    pub executed: usize,
    /// The message's tag: `Q`, `P` or `E`, or 0 for the start.
    pub tag: u8,
}

/// The server; it ends with the test's process.
pub struct Fake {
    /// Keeps the socket's folder.
    _folder: tempfile::TempDir,
    pub target: Target,
    /// All messages' tags, with the texts of queries, in order of arrival.
    pub seen: Arc<Mutex<Vec<String>>>,
    accepted: Arc<AtomicUsize>,
}

impl Fake {
    /// Begins to serve.
    pub fn new(act: impl Fn(Asked) -> Act + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (act, log) = (Arc::new(act), seen.clone());
        let accepted = Arc::new(AtomicUsize::new(0));
        let counter = accepted.clone();
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (act, log) = (act.clone(), log.clone());
                // Relaxed: readers need the number alone.
                counter.fetch_add(1, Ordering::Relaxed);
                let mut session = Session { stream: stream.unwrap(), connection, executed: 0, log };
                // Some tests have thousands of connections.
                let small = thread::Builder::new().stack_size(128 << 10);
                small.spawn(move || session.serve(&*act)).unwrap();
            }
        });
        let target = crate::tests::target_at(Dialect::Postgres, Address::Unix(path));
        Self { _folder: folder, target, seen, accepted }
    }

    /// A server that always returns the row.
    pub fn rows() -> Self {
        Self::new(|_| Act::Row)
    }

    /// A server that fails statements chosen by their number on their connection.
    pub fn failing(code: &'static [u8; 5], which: fn(usize) -> bool) -> Self {
        Self::new(move |asked: Asked| match asked.tag {
            b'E' if which(asked.executed) => Act::Error(code),
            _ => Act::Row,
        })
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        // Relaxed: as above.
        self.accepted.load(Ordering::Relaxed)
    }

    /// Number of times a message came.
    pub fn count(&self, message: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|one| *one == message).count()
    }
}

struct Session {
    stream: UnixStream,
    connection: usize,
    executed: usize,
    log: Arc<Mutex<Vec<String>>>,
}

/// A row's description: one column, n.
const COLUMN: &[u8] = b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";

/// Appends an error message.
pub fn error(out: &mut Vec<u8>, severity: &str, code: &[u8; 5]) {
    let code = std::str::from_utf8(code).unwrap();
    out.extend(message(b'E', format!("S{severity}\0V{severity}\0C{code}\0Mno luck\0\0").as_bytes()));
}

impl Session {
    fn serve(&mut self, act: &dyn Fn(Asked) -> Act) -> Option<()> {
        self.body()?;
        let mut out = Vec::new();
        match act(Asked { connection: self.connection, executed: 0, tag: 0 }) {
            Act::Fatal(code) => {
                error(&mut out, "FATAL", code);
                return self.stream.write_all(&out).ok();
            }
            Act::Close => return None,
            Act::After(time) => thread::sleep(time),
            _ => (),
        }
        out.extend(message(b'R', &[0; 4]));
        out.extend(message(b'S', b"server_version\x0018\0"));
        out.extend(message(b'Z', b"I"));
        let (mut status, mut skipping) = (b'I', false);
        let (mut prepared, mut bound) = (HashMap::new(), String::new());
        loop {
            self.stream.write_all(&out).ok()?;
            out.clear();
            let mut tag = [0];
            self.stream.read_exact(&mut tag).ok()?;
            let tag = tag[0];
            let body = self.body()?;
            let part =
                |at| String::from_utf8_lossy(body.split(|&byte| byte == 0).nth(at).unwrap()).into_owned();
            let text = match tag {
                b'Q' => part(0),
                b'P' => part(1),
                b'E' => bound.clone(),
                _ => String::new(),
            };
            let seen = if tag == b'Q' { text.clone() } else { char::from(tag).to_string() };
            self.log.lock().unwrap().push(seen);
            match tag {
                b'X' => return None,
                b'S' => skipping = false,
                _ if skipping => continue,
                b'B' => {
                    bound = prepared.get(&part(1)).cloned().unwrap_or_default();
                    out.extend(message(b'2', b""));
                }
                b'D' => out.extend(message(b'T', COLUMN)),
                b'P' | b'E' | b'Q' => {
                    let asked = Asked { connection: self.connection, executed: self.executed, tag };
                    let act = if text == "ROLLBACK" { Act::Row } else { act(asked) };
                    let failed = self.statement(act, tag, &mut out)?;
                    self.executed += usize::from(tag != b'P' && text != "ROLLBACK");
                    match text.as_str() {
                        _ if tag == b'P' => _ = prepared.insert(part(0), text),
                        _ if failed => status = if status == b'I' { b'I' } else { b'E' },
                        "BEGIN" => status = b'T',
                        "COMMIT" | "ROLLBACK" => status = b'I',
                        _ => (),
                    }
                    skipping = failed && tag != b'Q';
                }
                _ => panic!("message {tag}"),
            }
            if matches!(tag, b'S' | b'Q') {
                out.extend(message(b'Z', &[status]));
            }
        }
    }

    /// Does as `act` says; returns whether the statement has failed. `None`: the connection is
    /// over.
    fn statement(&mut self, act: Act, tag: u8, out: &mut Vec<u8>) -> Option<bool> {
        let row = |out: &mut Vec<u8>, value: &[u8]| {
            if tag == b'P' {
                return out.extend(message(b'1', b""));
            }
            if tag == b'Q' {
                out.extend(message(b'T', COLUMN));
            }
            out.extend(message(b'D', &[b"\0\x01", &(value.len() as u32).to_be_bytes()[..], value].concat()));
            out.extend(message(b'C', b"SELECT 1\0"));
        };
        match act {
            Act::Row => row(out, b"42"),
            Act::After(time) => {
                thread::sleep(time);
                row(out, b"42");
            }
            Act::Long(length) => {
                row(out, &vec![b'7'; length]);
                for piece in out.chunks(out.len() / 3 + 1) {
                    self.stream.write_all(piece).ok()?;
                    thread::sleep(Duration::from_millis(2));
                }
                out.clear();
            }
            Act::Close => return None,
            Act::Fatal(code) => {
                error(out, "FATAL", code);
                self.stream.write_all(out).ok()?;
                return None;
            }
            Act::Error(code) => {
                error(out, "ERROR", code);
                return Some(true);
            }
        }
        Some(false)
    }

    /// Reads a message's length and its body.
    fn body(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).ok()?;
        let mut body = vec![0; u32::from_be_bytes(head) as usize - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some(body)
    }
}
