//! Random damage to the streams of real clients. The test cuts, splices, repeats and changes
//! recorded streams of psql and pgbench, and sends them thousands of times a second. The server
//! stays up, its memory does not grow, and other sessions never notice. `ALLCORE_FUZZ_SECONDS` sets
//! for how long: 10 s in `make test`, 300 s in `make soak`. `ALLCORE_FUZZ_SEED` repeats a run's
//! damage.

use crate::common::dice::Dice;
use crate::common::{Server, succeed};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Stands between clients and the server and writes down what each connection's client says.
struct Recorder {
    port: u16,
    streams: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Recorder {
    fn new(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(mut client), kept) = (client, Arc::clone(&kept)) else { return };
                let mut upstream = TcpStream::connect(("127.0.0.1", server)).unwrap();
                let (mut back, mut down) = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut back, &mut down));
                std::thread::spawn(move || {
                    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
                    while let Ok(read @ 1..) = client.read(&mut piece) {
                        said.extend_from_slice(&piece[..read]);
                        if upstream.write_all(&piece[..read]).is_err() {
                            break;
                        }
                    }
                    // An error means that the server has closed already.
                    let _ = upstream.shutdown(Shutdown::Write);
                    kept.lock().unwrap().push(said);
                });
            }
        });
        Self { port, streams }
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string()).env("PGUSER", "postgres");
        command.env("PGDATABASE", "fuzzed").env("PGSSLMODE", "disable").env("PGGSSENCMODE", "disable");
        // Damage may add digits to a number and so make a statement run very long; the timeout ends
        // it.
        command.env("PGOPTIONS", "-c statement_timeout=5s");
        command
    }
}

/// Recorded streams of real clients: the simple and the extended protocol, prepared statements,
/// COPY both ways, errors.
fn recorded(server: &Server) -> Vec<Vec<u8>> {
    server.psql("create database fuzzed");
    let recorder = Recorder::new(server.port);
    succeed(recorder.client("pgbench").args(["-i", "-s", "1", "-q", "-I", "dtGp"]), &server.log());
    for mode in ["simple", "extended", "prepared"] {
        for script in ["tpcb-like", "select-only"] {
            let run = ["-n", "-c", "1", "-t", "2", "-M", mode, "-b", script];
            succeed(recorder.client("pgbench").args(run), &server.log());
        }
    }
    let script = "create table if not exists t (a int primary key, b text, c numeric, d timestamptz);
        copy t from stdin with (format csv);\n900,x,1.5,2020-01-01\n901,\"y,z\",,\n\\.\n
        copy t to stdout; begin; update t set b = 'w' where a = 900; savepoint s; select 1/0; rollback to s;
        declare c cursor for select * from t; fetch 1 from c; commit; set datestyle to 'German'; show all;
        prepare p as select * from t where a = $1; execute p(900); \\d t\n select $$x$$ from nowhere; delete from t;";
    let path = server.folder.path().join("script.sql");
    std::fs::write(&path, script).unwrap();
    succeed(recorder.client("psql").args(["-X", "-q", "-o", "/dev/null", "-f"]).arg(&path), &server.log());
    let deadline = Instant::now() + Duration::from_secs(10);
    // The last of them is written down a moment after its client has ended.
    while recorder.streams.lock().unwrap().len() < 8 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    // The stream of `pgbench -i` is the longest, and its middle repeats one kind of row. So each
    // stream is cut to its first 16 KiB.
    let mut streams = recorder.streams.lock().unwrap().clone();
    streams.iter_mut().for_each(|stream| stream.truncate(16 << 10));
    assert!(streams.len() >= 8 && streams.iter().all(|stream| stream.len() > 40), "{}", streams.len());
    streams
}

/// A stream with a few faults in it.
fn damaged(streams: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = streams[dice.roll(streams.len())].clone();
    // Most faults stand behind the start-up packet, which ends sessions before they begin.
    let start = if dice.roll(5) == 0 {
        0
    } else {
        u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
    };
    for _ in 0..1 + dice.roll(4) {
        if bytes.len() <= start + 1 {
            break;
        }
        let at = start + dice.roll(bytes.len() - start);
        let length = 1 + dice.roll(64.min(bytes.len() - at));
        match dice.roll(8) {
            0 => bytes[at] ^= 1 << dice.roll(8),
            1 => bytes[at] = dice.roll(256) as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let piece = bytes[at..at + length].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = &streams[dice.roll(streams.len())];
                let from = dice.roll(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            6 => {
                let noise: Vec<u8> = (0..length).map(|_| dice.roll(256) as u8).collect();
                bytes.splice(at..at, noise);
            }
            // A number at its bounds, where a length or a count may stand.
            _ => {
                let bound =
                    [0_u32, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff, 0x4000_0000][dice.roll(7)];
                let end = (at + 4).min(bytes.len());
                bytes[at..end].copy_from_slice(&bound.to_be_bytes()[..end - at]);
            }
        }
    }
    bytes
}

/// Says it all, then either hangs up at once or reads until the server has nothing more to say.
fn say(server: &Server, bytes: &[u8], dice: &mut Dice) {
    let Ok(mut socket) = UnixStream::connect(server.folder.path().join(format!(".s.PGSQL.{}", server.port)))
    else {
        return;
    };
    // Far longer than a statement may take, and those before it that it waits for.
    let limit = Some(Duration::from_secs(60));
    socket.set_read_timeout(limit).unwrap();
    socket.set_write_timeout(limit).unwrap();
    // The server may have hung up already because of the faulty bytes.
    let _ = socket.write_all(bytes);
    if dice.roll(3) > 0 {
        let _ = socket.shutdown(Shutdown::Write);
        let mut piece = [0; 16 << 10];
        loop {
            match socket.read(&mut piece) {
                Ok(1..) => {}
                Ok(0) => break,
                Err(fault) if fault.kind() == std::io::ErrorKind::WouldBlock => {
                    panic!("the server neither answers nor closes")
                }
                Err(_) => break,
            }
        }
    }
}

fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server is up");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn damaged_streams_end_their_own_sessions_only() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let seed = number("ALLCORE_FUZZ_SEED", u64::from(std::process::id()));
    let time = Duration::from_secs(number("ALLCORE_FUZZ_SECONDS", 10));
    println!("ALLCORE_FUZZ_SEED={seed}");
    let server = Server::start(&[]);
    server.psql("create table beside (id int primary key, n int); insert into beside values (1, 0)");
    let streams = recorded(&server);
    let (over, said, steps) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + time;
    // Memory that the first wave leaves behind (plans, buffers of fibers) does not count as growth.
    let mut settled = None;
    std::thread::scope(|scope| {
        let bystander = scope.spawn(|| {
            let mut client = server.connect();
            while !over.load(Ordering::Relaxed) {
                let mut change = client.transaction().unwrap();
                change.execute("update beside set n = n + $1 where id = 1", &[&1_i32]).unwrap();
                change.commit().unwrap();
                steps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let fuzzers: Vec<_> = (0..4)
            .map(|thread| {
                let (server, streams, said) = (&server, &streams, &said);
                scope.spawn(move || {
                    let mut dice = Dice(seed.wrapping_add(thread));
                    while Instant::now() < end {
                        let bytes = damaged(streams, &mut dice);
                        say(server, &bytes, &mut dice);
                        said.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        while Instant::now() < end && !bystander.is_finished() {
            std::thread::sleep(Duration::from_millis(200));
            if settled.is_none() && Instant::now() + time.mul_f64(0.66) > end {
                settled = Some(resident(&server));
            }
        }
        for fuzzer in fuzzers {
            fuzzer.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        bystander.join().unwrap();
    });
    let (before, after) = (settled.unwrap(), resident(&server));
    let (said, steps) = (said.into_inner(), steps.into_inner());
    println!(
        "{said} damaged streams in {time:?}; {steps} transactions beside; {before} to {after} MiB resident"
    );
    assert!(!server.log().contains("panic"), "seed {seed}:\n{}", server.log());
    assert_eq!(server.psql("select n from beside"), steps.to_string(), "seed {seed}");
    assert!(after <= before + 64, "seed {seed}: memory grew from {before} to {after} MiB");
    // Nothing of them is left once the last statement has reached its limit: no session, no lock.
    let left = || server.psql("select count(*) from pg_stat_activity where datname = 'fuzzed'");
    let deadline = Instant::now() + Duration::from_secs(60);
    while left() != "0" {
        assert!(Instant::now() < deadline, "seed {seed}: {} sessions are left", left());
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut server = server;
    server.stop();
    server.check();
}
