//! Out-of-line values between sessions, through crashes, and through clients, in megabytes and by
//! every route.

use std::io::{Read, Write};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use crate::common::{Server, pid, succeed};
use postgres::error::SqlState;

/// Bytes without a pattern that a mistake could hide in.
fn noise(length: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(seed >> 16).to_le_bytes()[..6]);
    }
    bytes.truncate(length);
    bytes
}

fn body(client: &mut impl postgres::GenericClient, id: i32) -> String {
    client.query_one("select body from w where id = $1", &[&id]).unwrap().get(0)
}

fn fixture() -> Server {
    let server = Server::start(&[]);
    server.psql(
        "create table w (id int primary key, n int not null, body text);
         insert into w select i, 0, repeat('value ' || i || ' ', 5000) from generate_series(1, 3) i",
    );
    server
}

#[test]
fn an_old_snapshot_reads_the_old_value() {
    let mut server = fixture();
    let (mut old, mut new) = (server.connect(), server.connect());
    let old = old.build_transaction().isolation_level(postgres::IsolationLevel::RepeatableRead);
    let mut old = old.start().unwrap();
    let before: Vec<String> = (1..=3).map(|id| body(&mut old, id)).collect();
    for round in 0..5 {
        new.execute("update w set body = repeat('round ' || $1::int, 4000)", &[&round]).unwrap();
    }
    new.batch_execute("delete from w where id = 2; update w set body = 'short' where id = 3").unwrap();
    new.batch_execute("vacuum w").unwrap();
    for id in 1..=3 {
        assert_eq!(body(&mut old, id), before[id as usize - 1]);
    }
    old.commit().unwrap();
    new.batch_execute("vacuum w").unwrap();
    assert_eq!(body(&mut new, 1), "round 4".repeat(4000));
    assert_eq!(body(&mut new, 3), "short");
    drop(new);
    server.stop();
    // One value of 28,000 bytes is left.
    assert!(server.check().contains(" 15 chunks of long values"));
}

#[test]
fn a_writer_that_waited_goes_on_from_the_newest_value() {
    let mut server = fixture();
    let (mut one, mut two, mut three) = (server.connect(), server.connect(), server.connect());
    one.batch_execute("begin; update w set body = repeat('first ', 3000) where id = 1").unwrap();
    let numbers = [pid(&mut two), pid(&mut three)];
    let waiter = std::thread::spawn(move || {
        let sql = "update w set body = body || repeat('second', 1000), n = length(body) where id = 1 and length(body) > 10";
        let count = two.execute(sql, &[]).unwrap();
        // A value that was written for a version somebody else was faster with.
        let lost =
            two.execute("update w set body = repeat('lost', 2000) where id = 2 and n = 0", &[]).unwrap();
        (count, lost)
    });
    let locker = std::thread::spawn(move || {
        let row = three.query_one("select body from w where id = 1 for update", &[]).unwrap();
        row.get::<_, String>(0)
    });
    numbers.iter().for_each(|number| server.wait_standing(*number));
    one.batch_execute("commit; begin; update w set n = 1 where id = 2").unwrap();
    server.wait_standing(numbers[0]);
    one.batch_execute("commit").unwrap();
    let (first, second) = ("first ".repeat(3000), "second".repeat(1000));
    assert_eq!(waiter.join().unwrap(), (1, 0));
    let locked = locker.join().unwrap();
    assert!(locked == first || locked == format!("{first}{second}"));
    assert_eq!(body(&mut one, 1), format!("{first}{second}"));
    assert_eq!(body(&mut one, 2), "value 2 ".repeat(5000));
    let n: i32 = one.query_one("select n from w where id = 1", &[]).unwrap().get(0);
    assert_eq!(n, 18_000);
    drop(one);
    server.stop();
    server.check();
}

#[test]
fn copies_go_out_and_come_back() {
    let mut server = Server::start(&[]);
    server.psql(
        "create table w (id int primary key, body text, raw bytea, n numeric, a text[]);
         insert into w select i, repeat(chr(9) || chr(10) || '\\é\"' || i, 1000 * i),
             decode(repeat('00ff5c0a', 900 * i), 'hex'), repeat('9876543210', 300 * i)::numeric, array[repeat('x', 2000 * i), null]
         from generate_series(1, 9) i;
         insert into w values (10, repeat('megabytes!', 1000000), null, null, null)",
    );
    let sum = "select md5(string_agg(id || md5(body) || coalesce(md5(raw), '') || coalesce(md5(n::text), '') || coalesce(md5(a::text), ''), ',' order by id)) from w";
    let before = server.psql(sum);
    for format in ["text", "csv", "binary"] {
        let copy = |sql: String, input: Option<Vec<u8>>| {
            let mut command = server.client("psql");
            command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", &sql]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let writer = std::thread::spawn(move || stdin.write_all(&input.unwrap_or_default()));
            let mut output = Vec::new();
            child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
            writer.join().unwrap().unwrap();
            assert!(child.wait().unwrap().success(), "{sql}");
            output
        };
        let out = copy(format!("copy w to stdout (format {format})"), None);
        assert!(out.len() > 10_000_000);
        server.psql("truncate w");
        copy(format!("copy w from stdin (format {format})"), Some(out));
        assert_eq!(server.psql(sum), before, "{format}");
    }
    server.stop();
    server.check();
}

#[test]
fn clients_send_and_fetch_many_megabytes_and_may_cancel() {
    const LENGTH: usize = 50 << 20;
    let mut server = Server::start(&["--buffers", "64MiB"]);
    server.psql("create table w (id int primary key, raw bytea)");
    let mut client = server.connect();
    let bytes = noise(LENGTH, 1);
    assert_eq!(client.execute("insert into w values (1, $1)", &[&bytes]).unwrap(), 1);
    let back: Vec<u8> = client.query_one("select raw from w where id = 1", &[]).unwrap().get(0);
    assert!(back == bytes, "what came back differs");
    let short = client.query_one("select substr(encode(raw, 'hex'), 1, 12) from w", &[]).unwrap();
    let head: String = bytes[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(short.get::<_, String>(0), head);
    // A cancel ends a statement in the middle of its values, and what it wrote is gone.
    let (token, number) = (client.cancel_token(), pid(&mut client));
    let fault = std::thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_active(number);
            std::thread::sleep(Duration::from_millis(100));
            token.cancel_query(postgres::NoTls).unwrap();
        });
        let many = "insert into w select i, (select raw from w where id = 1) from generate_series(2, 200) i";
        client.batch_execute(many).unwrap_err()
    });
    assert_eq!(fault.code(), Some(&SqlState::QUERY_CANCELED));
    // Meanwhile others are served, on the same core too: each of them looks more than once while
    // one statement runs.
    let lookers: Vec<(Mutex<postgres::Client>, AtomicI64)> =
        (0..4).map(|_| (Mutex::new(server.connect()), AtomicI64::new(0))).collect();
    for sql in ["update w set raw = raw || '\\x00'::bytea", "delete from w"] {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (looker, looks) in &lookers {
                looks.store(0, Ordering::Relaxed);
                scope.spawn(|| {
                    let mut looker = looker.lock().unwrap();
                    while !stop.load(Ordering::Relaxed) {
                        looker.query_one("select 1", &[]).unwrap();
                        looks.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            // All look by now.
            while lookers.iter().any(|(_, looks)| looks.load(Ordering::Relaxed) == 0) {
                std::thread::yield_now();
            }
            let seen = || lookers.iter().map(|(_, looks)| looks.load(Ordering::Relaxed)).collect::<Vec<_>>();
            let before = seen();
            client.execute(sql, &[]).unwrap();
            let after = seen();
            stop.store(true, Ordering::Relaxed);
            // One may have been under way when the statement began, and one when it ended.
            let served = before.iter().zip(&after).all(|(before, after)| after - before >= 3);
            assert!(served, "{sql}: looks before {before:?}, after {after:?}");
        });
    }
    drop(lookers);
    let left: i64 = client.query_one("select count(*) from w", &[]).unwrap().get(0);
    assert_eq!(left, 0);
    client.batch_execute("vacuum w").unwrap();
    drop(client);
    server.stop();
    assert!(server.check().contains(" 0 chunks of long values"));
}

#[test]
fn too_long_for_an_index_names_it() {
    let server = Server::start(&[]);
    server.psql("create table w (id text primary key, body text); create index w_body on w (body)");
    let long = |column| format!("insert into w ({column}) values (repeat('x', 1100))");
    let fault = server.psql_error(&long("id"));
    assert!(fault.contains("index row size 1103 exceeds maximum 1000 for index \"w_pkey\""), "{fault}");
    let fault = server.psql_error("insert into w values ('a', repeat('x', 5000))");
    assert!(fault.contains("index row size 5007 exceeds maximum 1000 for index \"w_body\""), "{fault}");
    server.psql("drop index w_body; insert into w values ('a', repeat('x', 5000))");
    let fault = server.psql_error("create index again on w (body)");
    assert!(fault.contains("exceeds maximum 1000 for index \"again\""), "{fault}");
    assert_eq!(server.psql("select id, length(body) from w"), "a|5000");
}

/// Changes rows at random; each row says what its value must be.
fn work(client: &mut postgres::Client, next: &AtomicI64, mine: &mut Vec<i64>) -> Result<(), postgres::Error> {
    let id = next.fetch_add(1, Ordering::Relaxed);
    let length = 100 + id * 7919 % 60_000;
    let text: String =
        noise(length as usize, id as u64).iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    let other = id * 31 % (id + 1);
    let mut transaction = client.transaction()?;
    transaction.execute("insert into w values ($1, md5($2), $2, 0)", &[&id, &text])?;
    let changed = format!("{text}{other}");
    transaction.execute("update w set sum = md5($2), body = $2 where id = $1", &[&other, &changed])?;
    transaction.execute("update w set touched = touched + 1 where id = $1", &[&(other / 2)])?;
    if id % 5 == 0 {
        transaction.execute("delete from w where id = $1", &[&(other / 3)])?;
    }
    if id % 7 == 0 {
        return transaction.rollback();
    }
    transaction.commit()?;
    mine.push(id);
    Ok(())
}

#[test]
fn killed_under_load_no_value_is_lost_or_mixed() {
    let rounds = 6;
    let mut server = Server::start(&["--buffers", "8MiB"]);
    server.psql(
        "create table w (id bigint primary key, sum text not null, body text not null, touched int not null)",
    );
    let next = AtomicI64::new(1);
    for round in 0..rounds {
        let acknowledged = Mutex::new(Vec::new());
        let pid = server.pid().to_string();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let Ok(mut client) = server.try_connect() else { return };
                    let mut mine = Vec::new();
                    loop {
                        match work(&mut client, &next, &mut mine) {
                            Ok(()) => {}
                            Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => {}
                            Err(error) => {
                                assert!(
                                    error.is_closed() || error.code().is_none(),
                                    "{error}: {:?}",
                                    error.code()
                                );
                                break;
                            }
                        }
                    }
                    acknowledged.lock().unwrap().extend(mine);
                });
            }
            std::thread::sleep(Duration::from_millis(400 + 150 * round));
            succeed(std::process::Command::new("kill").args(["-9", &pid]), "");
        });
        server.crash();
        server.launch();
        let wrong = server.psql("select count(*) from w where md5(body) <> sum");
        assert_eq!(wrong, "0", "values do not agree with their sums after round {round}");
        // Acknowledged inserts are there, unless a later transaction deleted them: the number says
        // which may.
        let present: std::collections::HashSet<i64> =
            server.connect().query("select id from w", &[]).unwrap().iter().map(|row| row.get(0)).collect();
        let last = next.load(Ordering::Relaxed);
        let deleted: std::collections::HashSet<i64> =
            (1..last).filter(|id| id % 5 == 0).map(|id| id * 31 % (id + 1) / 3).collect();
        for id in acknowledged.into_inner().unwrap() {
            assert!(present.contains(&id) || deleted.contains(&id), "row {id} was acknowledged and is lost");
        }
        if round % 3 == 2 {
            server.stop();
            server.check();
            server.launch();
        }
    }
}
