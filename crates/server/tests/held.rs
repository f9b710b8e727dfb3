//! An administrator's session while every core is held: the reserve worker serves it, and it can do
//! whatever any session can.
#![allow(missing_docs, reason = "a test")]

use runtime::net::{Address, Bound};
use server::{Options, Policy, Server};
use sql::database::Database;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

const CORES: usize = 2;

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A client of the simple protocol.
struct Client(UnixStream);

impl Client {
    /// `None` if the server does not answer within `timeout`.
    fn connect(path: &Path, timeout: Duration) -> Option<Client> {
        let mut socket = UnixStream::connect(path).unwrap();
        socket.set_read_timeout(Some(timeout)).unwrap();
        let parameters = b"user\0postgres\0\0";
        let mut bytes = (parameters.len() as u32 + 8).to_be_bytes().to_vec();
        bytes.extend(196_608u32.to_be_bytes());
        bytes.extend(parameters);
        socket.write_all(&bytes).unwrap();
        let mut client = Client(socket);
        client.answer()?;
        client.0.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Some(client)
    }

    fn send(&mut self, text: &str) {
        let mut bytes = vec![b'Q'];
        bytes.extend((text.len() as u32 + 5).to_be_bytes());
        bytes.extend(text.as_bytes());
        bytes.push(0);
        self.0.write_all(&bytes).unwrap();
    }

    /// The bodies of all messages until the server is ready again, as text. `None` if nothing comes
    /// in time.
    fn answer(&mut self) -> Option<String> {
        let mut said = String::new();
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).ok()?;
            let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
            self.0.read_exact(&mut body).ok()?;
            assert_ne!(head[0], b'E', "{}", String::from_utf8_lossy(&body));
            said.push_str(&String::from_utf8_lossy(&body));
            if head[0] == b'Z' {
                return Some(said);
            }
        }
    }

    fn run(&mut self, text: &str) -> String {
        self.send(text);
        self.answer().expect("an answer within a minute")
    }
}

/// Holds these workers until the result is dropped.
fn hold(database: &Database, workers: Range<usize>) -> Vec<mpsc::Sender<()>> {
    let hold = |worker| {
        let (free, wait) = mpsc::channel::<()>();
        let (begun, held) = mpsc::channel();
        database.runtime().spawn(worker, move || {
            begun.send(()).unwrap();
            let _ = wait.recv();
        });
        held.recv().unwrap();
        free
    };
    workers.map(hold).collect()
}

#[test]
fn an_administrator_works_while_every_core_is_held() {
    let folder = Folder(std::env::temp_dir().join(format!("allcore-held-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&folder.0);
    std::fs::create_dir(&folder.0).unwrap();
    let options = sql::database::Options { cores: Some(CORES), ..sql::database::Options::default() };
    let database = Database::open(&folder.0.join("data"), options).unwrap();
    let path = folder.0.join("socket");
    let places = vec![Bound::new(Address::Unix { path: path.clone(), mode: 0o700 }).unwrap()];
    let server = Server::start(database.clone(), Options { places, policy: Policy::default() }).unwrap();
    let timeout = Duration::from_secs(60);
    let mut ordinary = Client::connect(&path, timeout).expect("cores that are free");
    ordinary.run("create table t (id int primary key, v int); insert into t select g, 0 from generate_series(1, 100) g");

    let free = hold(&database, 0..CORES);
    // The watchdog takes a second to notice; a session that comes before goes to a core.
    let mut administrator = (0..60)
        .find_map(|_| Client::connect(&path, Duration::from_secs(2)))
        .expect("an answer from the reserve worker");
    assert!(
        administrator
            .run("select 'sessions=' || count(*) from pg_stat_activity where backend_type = 'client backend'")
            .contains("sessions=2")
    );
    administrator
        .run("create table u as select g as id, repeat('x', 3000) as filler from generate_series(1, 2000) g");
    for text in ["create index on u (id)", "delete from u where id % 2 = 0", "vacuum u", "analyze u"] {
        administrator.run(text);
    }
    assert!(administrator.run("select sum(id) from u where id <= 9").contains("25"));
    administrator.run("begin; update t set v = v + 1 where id = 1");
    ordinary.send("update t set v = v * 10 where id = 1");

    drop(free);
    // The other session waits on its core for the reserve worker's transaction.
    while !administrator
        .run("select count(*)::text || ' waits' from pg_locks where not granted")
        .contains("1 waits")
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    administrator.run("commit");
    ordinary.answer().expect("the lock is given up");
    assert!(ordinary.run("select 'v=' || v from t where id = 1").contains("v=10"));
    for number in 2..=100 {
        for client in [&mut ordinary, &mut administrator] {
            client.run(&format!("update t set v = v + 1 where id in ({number}, 1)"));
        }
    }
    assert!(administrator.run("select 'sum=' || sum(v) from t").contains("sum=406"));
    // The service worker hears clients, whatever an administrator runs on the reserve worker: a
    // client that asks for TLS learns that there is none.
    let free = hold(&database, 0..CORES + 1);
    let mut asking = UnixStream::connect(&path).unwrap();
    asking.set_read_timeout(Some(timeout)).unwrap();
    asking.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    let mut answer = [0];
    asking.read_exact(&mut answer).expect("an answer from the service worker");
    assert_eq!(answer, *b"N");
    drop((asking, free));
    drop((ordinary, administrator));
    server.stop();
    database.shutdown().unwrap();
    // The changes are there after a restart, from the log and the pages alike.
    let database = Database::open(&folder.0.join("data"), sql::database::Options::default()).unwrap();
    let mut session = database.session("postgres", 0).unwrap();
    let answer = format!("{:?}", session.run("select sum(v)::int from t").unwrap());
    assert!(answer.contains("406"), "{answer}");
    drop(session);
    database.shutdown().unwrap();
}
