//! A client that speaks the protocol's bytes, for what no driver would send.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A start-up packet.
pub fn startup(user: &str, database: &str) -> Vec<u8> {
    let mut body = 196_608u32.to_be_bytes().to_vec();
    for part in ["user", user, "database", database, ""] {
        body.extend(part.as_bytes());
        body.push(0);
    }
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend(body);
    packet
}

/// A connection, and what the server says on it.
pub struct Said {
    socket: TcpStream,
}

/// A message: its type and its body.
pub type Message = (u8, Vec<u8>);

impl Said {
    pub fn connect(port: u16) -> Self {
        Self::on(TcpStream::connect(("127.0.0.1", port)).unwrap())
    }

    /// On a connection that is there.
    pub fn on(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { socket }
    }

    /// Sends bytes; a server that has gone takes none.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    pub fn message(&mut self, kind: u8, body: &[u8]) {
        let mut bytes = vec![kind];
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(body);
        self.send(&bytes);
    }

    pub fn query(&mut self, sql: &str) {
        self.message(b'Q', format!("{sql}\0").as_bytes());
    }

    /// The next message; None at the connection's end, which a reset may be too.
    pub fn next(&mut self) -> Option<Message> {
        let mut head = [0; 5];
        let mut read = |to: &mut [u8]| match self.socket.read_exact(to) {
            Ok(()) => true,
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                false
            }
            Err(error) => panic!("{error}"),
        };
        if !read(&mut head) {
            return None;
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        read(&mut body).then_some((head[0], body))
    }

    /// The body of the next message of a type; those before are passed over.
    pub fn until(&mut self, kind: u8) -> Vec<u8> {
        let mut passed = Vec::new();
        while let Some((found, body)) = self.next() {
            if found == kind {
                return body;
            }
            passed.push((found as char, String::from_utf8_lossy(&body).into_owned()));
        }
        panic!("the connection ended after {passed:?}");
    }

    /// All messages up to the connection's end.
    pub fn until_end(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// The SQLSTATE of the first error among messages.
    pub fn code(messages: &[Message]) -> Option<String> {
        let (_, body) = messages.iter().find(|(kind, _)| *kind == b'E')?;
        let field = body.split(|byte| *byte == 0).find(|field| field.first() == Some(&b'C'))?;
        Some(String::from_utf8_lossy(&field[1..]).into_owned())
    }
}
