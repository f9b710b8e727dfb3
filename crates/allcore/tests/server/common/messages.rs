//! A client that sends and receives single messages, for tests of the protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::Server;

/// A client that speaks bytes.
pub struct Raw {
    pub socket: TcpStream,
}

/// One message of the server.
#[derive(Debug, PartialEq)]
pub struct Message {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Message {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).replace('\0', " ")
    }
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

impl Raw {
    pub fn connect(server: &Server) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { socket }
    }

    pub fn log_in(server: &Server) -> Self {
        let mut raw = Self::connect(server);
        raw.send(&startup(b"user\0postgres\0\0"));
        let last = raw.until(b'Z');
        assert_eq!(last.last().unwrap().body, b"I");
        raw
    }

    pub fn send(&mut self, bytes: &[u8]) {
        // The server may have closed already: what it said first is what counts.
        let _ = self.socket.write_all(bytes);
    }

    /// The next message; none where the server closed.
    pub fn receive(&mut self) -> Option<Message> {
        let mut head = [0; 5];
        match self.socket.read_exact(&mut head) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("the server neither answers nor closes")
            }
            Err(_) => return None,
        }
        let mut body = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4];
        self.socket.read_exact(&mut body).unwrap();
        Some(Message { kind: head[0], body })
    }

    /// All messages up to one of this type.
    pub fn until(&mut self, kind: u8) -> Vec<Message> {
        let mut seen = Vec::new();
        loop {
            let Some(next) = self.receive() else { panic!("closed before {:?}: {seen:?}", kind as char) };
            let done = next.kind == kind;
            seen.push(next);
            if done {
                return seen;
            }
        }
    }

    /// The session must end with an error of this code.
    pub fn ends_with(&mut self, code: &str) -> String {
        let mut said = String::new();
        while let Some(next) = self.receive() {
            if next.kind == b'E' {
                said = next.text();
            }
        }
        assert!(said.contains(&format!("C{code}")), "expected {code}, got: {said:?}");
        assert!(said.contains("FATAL"), "{said}");
        said
    }

    pub fn query(&mut self, sql: &str) -> Vec<Message> {
        self.send(&message(b'Q', format!("{sql}\0").as_bytes()));
        self.until(b'Z')
    }
}

/// The number of protocol 3.0.
pub const PROTOCOL: u32 = 196_608;

pub fn startup(parameters: &[u8]) -> Vec<u8> {
    startup_of(PROTOCOL, parameters)
}

pub fn startup_of(version: u32, parameters: &[u8]) -> Vec<u8> {
    let mut bytes = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(parameters);
    bytes
}

/// One short text a message: its type, and a row as text, a tag, a setting or an SQLSTATE.
pub fn summary(answer: &[Message]) -> Vec<String> {
    let one = |m: &Message| match m.kind {
        b'D' => {
            let text = &m.body[6..];
            format!("D {}", String::from_utf8_lossy(text))
        }
        b'C' | b'S' => format!("{} {}", m.kind as char, m.text().trim_end()),
        b'Z' => format!("Z {}", m.text()),
        b'E' => {
            let text = m.text();
            format!("E {}", text.split(' ').find(|field| field.starts_with('C')).unwrap_or("?"))
        }
        kind => (kind as char).to_string(),
    };
    answer.iter().map(one).collect()
}
