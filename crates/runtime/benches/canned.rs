//! A server on the runtime that answers `pgbench -S` with the same canned row and does no database
//! work. It shows the cost of the runtime itself, beside a plain epoll loop that does the same.
//!
//! `cargo bench -p runtime --bench canned -- SOCKET_FOLDER [CORES=2] [SECONDS]
//! [POLL_MICROSECONDS=0]`; without a folder it does nothing.

use std::sync::Arc;
use std::time::Duration;

use runtime::net::{Accepted, Address, Next, Serve, SessionIo};
use runtime::{Options, Runtime};

const ENCRYPTION_REQUESTS: [u32; 2] = [80_877_103, 80_877_104];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let Some(folder) = words.first() else { return };
    let number = |at: usize| words.get(at).map(|word| word.parse::<u64>().expect("a number"));
    let cores = number(1).unwrap_or(2) as usize;
    let poll = Duration::from_micros(number(3).unwrap_or(0));
    let options = Options { cores: Some(cores), poll, ..Options::default() };
    let runtime = Runtime::start(options).expect("the runtime starts");
    let path = std::path::Path::new(folder).join(".s.PGSQL.5432");
    std::fs::create_dir_all(folder).expect("the folder is made");
    let accept = |_: &Accepted| Box::new(Canned { started: false }) as Box<dyn Serve>;
    let listener =
        runtime.listen(Address::Unix { path, mode: 0o777 }, Arc::new(accept)).expect("the socket is free");
    std::thread::sleep(Duration::from_secs(number(2).unwrap_or(1 << 30)));
    drop(listener);
    runtime.shutdown();
}

struct Canned {
    started: bool,
}

impl Serve for Canned {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        let (input, output) = io.both();
        let mut at = 0;
        while let Some((len, next)) = self.answer(&input[at..], output) {
            at += len;
            if next == Next::Close {
                return Next::Close;
            }
        }
        io.consume(at);
        Next::Wait
    }

    fn closed(&mut self) {}
}

impl Canned {
    /// Answers the first whole message; its length.
    fn answer(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<(usize, Next)> {
        let number =
            |at: usize| input.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().expect("four")));
        if !self.started {
            let len = number(0)? as usize;
            input.get(..len)?;
            if ENCRYPTION_REQUESTS.contains(&number(4)?) {
                out.push(b'N');
                return Some((len, Next::Wait));
            }
            self.started = true;
            put(out, b'R', &[0; 4]);
            for parameter in [&b"server_version\x0018.0\0"[..], b"client_encoding\0UTF8\0"] {
                put(out, b'S', parameter);
            }
            put(out, b'Z', b"I");
            return Some((len, Next::Wait));
        }
        let len = number(1)? as usize + 1;
        let body = &input.get(..len)?[5..];
        match input[0] {
            b'P' => put(out, b'1', b""),
            b'B' => put(out, b'2', b""),
            b'D' => put_columns(out, &["abalance"]),
            b'E' => {
                put(out, b'D', b"\0\x01\0\0\0\x010");
                put(out, b'C', b"SELECT 1\0");
            }
            b'S' => put(out, b'Z', b"I"),
            b'Q' => {
                let asks = |word: &str| body.windows(word.len()).any(|part| part == word.as_bytes());
                if asks("partstrat") {
                    put_columns(out, &["n", "partstrat", "count"]);
                    put(out, b'D', b"\0\x03\0\0\0\x011\xff\xff\xff\xff\0\0\0\x010");
                } else {
                    put_columns(out, &["abalance"]);
                    let row: &[u8] =
                        if asks("count(*)") { b"\0\x01\0\0\0\x0210" } else { b"\0\x01\0\0\0\x010" };
                    put(out, b'D', row);
                }
                put(out, b'C', b"SELECT 1\0");
                put(out, b'Z', b"I");
            }
            b'X' => return Some((len, Next::Close)),
            _ => {}
        }
        Some((len, Next::Wait))
    }
}

fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

fn put_columns(out: &mut Vec<u8>, names: &[&str]) {
    let mut body = (names.len() as u16).to_be_bytes().to_vec();
    for name in names {
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
    }
    put(out, b'T', &body);
}
