//! A client of PostgreSQL's protocol over the model machine's sockets: simple queries, and their
//! values as text.

use std::io::{self, Read, Write};

use runtime::model::Connection;
use runtime::net::Address;

/// Version 3.0 of the protocol, as a startup message carries it.
const PROTOCOL: u32 = 3 << 16;

/// A connection that is let in.
pub struct Client(Connection);

/// A statement's result: the first column of its rows, or the SQLSTATE and message of its
/// error.
pub type Reply = Result<Vec<String>, (String, String)>;

impl Client {
    /// Connects and waits until the server is ready.
    pub fn connect(address: &Address) -> Client {
        let mut client = Client(Connection::open(address).expect("the server listens"));
        let mut body = PROTOCOL.to_be_bytes().to_vec();
        body.extend(b"user\0postgres\0database\0postgres\0\0");
        let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
        message.extend(body);
        client.0.write_all(&message).expect("the server takes the startup message");
        client.reply().expect("the server lets the client in");
        client
    }

    /// Runs statements and waits for their end.
    pub fn run(&mut self, sql: &str) -> Reply {
        let mut message = vec![b'Q'];
        message.extend((sql.len() as u32 + 5).to_be_bytes());
        message.extend(sql.as_bytes());
        message.push(0);
        self.0.write_all(&message).expect("the server takes a query");
        self.reply()
    }

    /// Reads messages until the server is ready for the next query.
    fn reply(&mut self) -> Reply {
        let mut values = Vec::new();
        let mut error = None;
        loop {
            let (kind, body) = self.message().expect("the server answers");
            match kind {
                b'D' => values.push(first_value(&body)),
                b'E' => error = Some((field(&body, b'C'), field(&body, b'M'))),
                b'Z' => return error.map_or(Ok(values), Err),
                _ => {}
            }
        }
    }

    fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        self.0.read_exact(&mut body)?;
        Ok((head[0], body))
    }
}

/// Runs a statement that must succeed; the first column of its rows.
pub fn expect(client: &mut Client, sql: &str) -> Vec<String> {
    client.run(sql).unwrap_or_else(|(code, message)| panic!("{sql}: {code}: {message}"))
}

/// The first value of a DataRow: behind the number of columns and its own length.
fn first_value(row: &[u8]) -> String {
    let length = u32::from_be_bytes([row[2], row[3], row[4], row[5]]) as usize;
    String::from_utf8_lossy(&row[6..6 + length]).into_owned()
}

/// A field of an ErrorResponse: a letter, text, and a zero byte each.
fn field(body: &[u8], letter: u8) -> String {
    let fields = body.split(|byte| *byte == 0);
    let found = fields.filter_map(|field| field.split_first()).find(|(first, _)| **first == letter);
    found.map_or_else(String::new, |(_, text)| String::from_utf8_lossy(text).into_owned())
}
