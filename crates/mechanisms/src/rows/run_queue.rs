//! Row `run-queue`: clients that ask a server, which switches between their sessions.
//!
//! K07 and B14 found the scheduler's lock and its search over all CPUs in the profile of servers
//! with a thread or process a connection. Their fixes are in the kernel. Here the row shows the
//! switches themselves: sessions are threads, or the engine's, which share one fiber a core. A
//! client has several connections, as a program with many users does, so that its own switches do
//! not hide those of the server.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use runtime::net::{Accepted, Address, Listener, Next, Serve, SessionIo};
use runtime::{Options, Runtime};
use sync::Mutex;
use sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

use super::{Arm, Part, Row, Started};
use crate::round::{Subject, Worker};

/// Connections of a client.
const CONNECTIONS: usize = 4;
/// Bytes of a question and of its answer.
const LENGTH: usize = 64;
/// Stack of a thread that serves a connection.
const STACK_BYTES: usize = 64 * 1024;

/// The row.
pub(super) const ROW: Row = Row {
    id: "run-queue",
    report: "K07, B14",
    about: "a server's switches between sessions: a thread for each connection, against fibers a core",
    operation: "send 64 bytes over a UNIX-domain socket and wait for their echo; a client asks 4 at a time",
    needs: None,
    code: "crates/runtime/src/net",
    arms: &[
        Arm {
            name: "thread each",
            part: Part::Stock,
            start: |threads| echo(Threads::new(threads * CONNECTIONS)?),
        },
        Arm { name: "fibers", part: Part::Allcore, start: |_| echo(Fibers::new()?) },
    ],
};

/// A server that sends back what it gets.
trait Echo: Sync {
    /// A connection to it.
    ///
    /// # Errors
    /// A line: the kernel refuses.
    fn connect(&self, number: usize) -> Result<UnixStream, String>;
}

/// A thread for each connection.
#[derive(Debug)]
struct Threads {
    clients: Box<[Mutex<Option<UnixStream>>]>,
    servers: Vec<JoinHandle<()>>,
}

impl Threads {
    fn new(connections: usize) -> Result<Self, String> {
        let fault = |error| format!("{connections} connections: {error}");
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for _ in 0..connections {
            let (client, mut server) = UnixStream::pair().map_err(fault)?;
            let serve = move || {
                let mut bytes = [0; LENGTH];
                // Until the client has gone.
                while server.read_exact(&mut bytes).is_ok() && server.write_all(&bytes).is_ok() {}
            };
            servers.push(Builder::new().stack_size(STACK_BYTES).spawn(serve).map_err(fault)?);
            clients.push(Mutex::new(Some(client)));
        }
        Ok(Self { clients: clients.into(), servers })
    }
}

impl Echo for Threads {
    fn connect(&self, number: usize) -> Result<UnixStream, String> {
        Ok(self.clients[number].lock().take().expect("a client takes each connection once"))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.clients.iter().for_each(|client| drop(client.lock().take()));
        self.servers.drain(..).for_each(|server| server.join().expect("a server that echoes"));
    }
}

/// The engine's runtime, with a worker a core.
#[derive(Debug)]
struct Fibers {
    // Dropped in this order: no connection is accepted while the runtime ends.
    _listener: Listener,
    runtime: Arc<Runtime>,
    folder: TempDir,
}

/// A session of it.
struct Session;

impl Serve for Session {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        let (input, output) = io.both();
        let whole = input.len() / LENGTH * LENGTH;
        output.extend_from_slice(&input[..whole]);
        io.consume(whole);
        if io.at_end() { Next::Close } else { Next::Wait }
    }

    fn closed(&mut self) {}
}

impl Fibers {
    fn new() -> Result<Self, String> {
        let fault = |error| format!("no runtime: {error}");
        let folder = tempfile::tempdir().map_err(fault)?;
        let runtime = Runtime::start(Options::default()).map_err(fault)?;
        let address = Address::Unix { path: folder.path().join("echo"), mode: 0o600 };
        let accept = |_: &Accepted| -> Box<dyn Serve> { Box::new(Session) };
        let listener = runtime.listen(address, Arc::new(accept)).map_err(fault)?;
        Ok(Self { _listener: listener, runtime, folder })
    }
}

impl Echo for Fibers {
    fn connect(&self, _: usize) -> Result<UnixStream, String> {
        UnixStream::connect(self.folder.path().join("echo"))
            .map_err(|error| format!("no connection: {error}"))
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        self.runtime.shutdown();
    }
}

fn echo(server: impl Echo + 'static) -> Started {
    Ok(Box::new(Clients { server, is_wrong: AtomicBool::new(false) }))
}

#[derive(Debug)]
struct Clients<E> {
    server: E,
    is_wrong: AtomicBool,
}

impl<E: Echo> Subject for Clients<E> {
    fn work(&self, worker: &mut Worker<'_>) {
        let first = worker.number() * CONNECTIONS;
        let connected = (first..first + CONNECTIONS).map(|number| self.server.connect(number));
        let mut streams = match connected.collect::<Result<Vec<_>, _>>() {
            Ok(streams) => streams,
            Err(reason) => return worker.refuse(reason),
        };
        let (mut count, mut is_wrong) = (worker.number() as u64, false);
        let question = |count: u64| {
            let mut bytes = [0; LENGTH];
            bytes[..8].copy_from_slice(&count.to_le_bytes());
            bytes
        };
        worker.repeat_many(|_| {
            for (count, stream) in (count..).zip(&mut streams) {
                is_wrong |= stream.write_all(&question(count)).is_err();
            }
            for (count, stream) in (count..).zip(&mut streams) {
                let mut answer = [0; LENGTH];
                is_wrong |= stream.read_exact(&mut answer).is_err() || answer != question(count);
            }
            count += 1;
            CONNECTIONS as u64
        });
        // Relaxed: read after the threads' end.
        self.is_wrong.fetch_or(is_wrong, Ordering::Relaxed);
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err("an answer is missing, or of another question".into());
        }
        Ok(())
    }
}
