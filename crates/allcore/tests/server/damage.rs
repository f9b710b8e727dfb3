//! Damage and scarcity: flipped bytes, a full disk, and dropped tables whose space must come back.
//! Also lost asynchronous commits, rows beyond the limits, and definitions rolled back or killed
//! half way. The server answers with the right error, stays up, and loses nothing it acknowledged.

use crate::common::{Server, SmallDisk, allcore, skip, succeed, text};
use postgres::error::SqlState;
use sql::database::{Database, Options};
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

const PAGE: usize = 8192;
/// Where a page's header has its kind, and the kind of a leaf.
const KIND: usize = 20;
const LEAF: u8 = 4;

/// The leaf in the file `pages` that holds `needle`, and the needle's place in the file.
fn leaf_with(server: &Server, needle: &str) -> (u64, u64) {
    let bytes = fs::read(server.data().join("pages")).unwrap();
    let mut found = Vec::new();
    for (number, page) in bytes.chunks_exact(PAGE).enumerate().filter(|(_, page)| page[KIND] == LEAF) {
        if let Some(at) = page.windows(needle.len()).position(|window| window == needle.as_bytes()) {
            found.push((number as u64, (number * PAGE + at) as u64));
        }
    }
    assert_eq!(found.len(), 1, "{needle} lies in {found:?}");
    found[0]
}

fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

/// The state of a statement that must fail.
fn failure(client: &mut postgres::Client, sql: &str) -> SqlState {
    match client.batch_execute(sql) {
        Ok(()) => panic!("{sql}: should have failed"),
        Err(error) => {
            error.code().cloned().unwrap_or_else(|| panic!("{sql}: failed without a state: {error}"))
        }
    }
}

fn count(client: &mut postgres::Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")).get(0)
}

#[test]
fn a_flipped_byte_is_found_and_fails_only_what_reads_it() {
    let mut server = Server::start(&[]);
    server.psql(
        "create table marked (id int primary key, note text not null);
         insert into marked select i, 'needle-' || lpad(i::text, 6, '0') || repeat('.', 60)
           from generate_series(1, 20000) i;
         create table sound (id int primary key, note text not null);
         insert into sound select i, 'n' || i from generate_series(1, 1000) i;",
    );
    server.stop();
    server.check();
    let (page, at) = leaf_with(&server, "needle-010000");
    flip(&server.data().join("pages"), at + 3);

    let output = allcore().arg("check").arg("--data").arg(server.data()).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("page {page}:")), "page {page} is not named in: {said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or_default();
    assert!(last.starts_with("allcore: ") && last.contains("found; restore the folder"), "{said}");

    server.launch();
    let mut client = server.connect();
    let corrupted = SqlState::DATA_CORRUPTED;
    assert_eq!(failure(&mut client, "select * from marked where id = 10000"), corrupted);
    assert_eq!(failure(&mut client, "select count(note) from marked"), corrupted);
    assert_eq!(failure(&mut client, "update marked set note = 'x' where id = 10000"), corrupted);
    assert_eq!(failure(&mut client, "delete from marked where id = 10000"), corrupted);
    assert_eq!(failure(&mut client, "insert into marked values (10000, 'again')"), corrupted);
    // A transaction that met the damage rolls back, what it did elsewhere with it.
    assert_eq!(
        failure(&mut client, "begin; update sound set note = 'x'; select * from marked where id = 10000"),
        corrupted
    );
    client.batch_execute("rollback").unwrap();
    assert_eq!(count(&mut client, "select count(*) from sound where note like 'n%'"), 1000);
    // Rows of other pages, before and behind.
    for id in [1, 9000, 11000, 20000] {
        assert_eq!(count(&mut client, &format!("select count(*) from marked where id = {id}")), 1);
        client.batch_execute(&format!("update marked set note = 'changed' where id = {id}")).unwrap();
    }
    client
        .batch_execute("insert into marked values (20001, 'more'); insert into sound values (1001, 'more')")
        .unwrap();
    assert_eq!(count(&mut client, "select count(*) from sound"), 1001);
    server.psql("select 1");

    // A table is dropped without a look at its leaves, and the damage is gone with it.
    client.batch_execute("drop table marked; create table marked (id int primary key)").unwrap();
    drop(client);
    settle(&mut server);
}

/// Ends a server that may not have freed all unneeded trees yet; a check in the open folder frees
/// the rest first. That life's log is complete, and the next one finds nothing to free.
fn settle(server: &mut Server) {
    server.stop();
    let options = Options { pin: false, ..Options::default() };
    let database = Database::open(&server.data(), options).unwrap();
    let report = database.check(&mut |_| {}).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    database.shutdown().unwrap();
}

/// Updates that need no page more fill the disk with log. Killed then, the server starts and goes
/// on: a checkpoint makes old log into new, although nobody has freed anything.
fn full_log_makes_room(server: &mut Server) {
    let mut client = server.connect();
    client
        .batch_execute(
            "create table churned (id int primary key, filler text not null);
             insert into churned select i, repeat('0', 1000) from generate_series(1, 2000) i",
        )
        .unwrap();
    for round in 1..=400 {
        let update = format!("update churned set filler = repeat('{}', 1000)", round % 10);
        let Err(error) = client.batch_execute(&update) else { continue };
        assert_eq!(error.code(), Some(&SqlState::DISK_FULL), "{error}\n{}", server.log());
        server.crash();
        server.launch();
        client = server.connect();
        let last =
            format!("select count(*) from churned where filler = repeat('{}', 1000)", (round - 1) % 10);
        assert_eq!(count(&mut client, &last), 2000, "a refused update left something, or took something");
        let deadline = Instant::now() + Duration::from_secs(120);
        while let Err(error) = client.batch_execute(&update) {
            assert_eq!(error.code(), Some(&SqlState::DISK_FULL), "{error}");
            assert!(Instant::now() < deadline, "old log is not let go: {error:?}\n{}", server.log());
            std::thread::sleep(Duration::from_millis(100));
        }
        client.batch_execute("drop table churned").unwrap();
        return;
    }
    panic!("the log did not fill the disk");
}

/// A file that takes a quarter of the disk, until the test needs the room.
fn put_ballast(path: &Path) {
    // An open file would keep its room, so it is closed here.
    let file = fs::File::create(path).unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(b'b'), 100 << 20), &mut &file).unwrap();
    file.sync_all().unwrap();
    // A start refuses files that others may read.
    file.set_permissions(Permissions::from_mode(0o600)).unwrap();
}

/// Runs batches of 1,000 rows until the disk is full; returns the number of rows.
fn fill_disk(server: &Server, client: &mut postgres::Client, batch: &dyn Fn(i32) -> String) -> i32 {
    // Old segments of the log soon become new ones; the disk is full if that has not helped.
    let deadline = Instant::now() + Duration::from_secs(120);
    let (mut rows, mut refused) = (0, 0);
    while refused < 4 {
        assert!(Instant::now() < deadline, "{rows} rows and no full disk");
        match client.batch_execute(&batch(rows + 1)) {
            Ok(()) => (rows, refused) = (rows + 1000, 0),
            Err(error) => {
                assert_eq!(error.code(), Some(&SqlState::DISK_FULL), "{error}\n{}", server.log());
                refused += 1;
                std::thread::sleep(Duration::from_millis(500));
            }
        }
    }
    assert!(rows > 0);
    rows
}

#[test]
fn a_full_disk_stops_writes_and_nothing_else() {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.stop();
    fs::remove_dir_all(server.data()).unwrap();
    fs::create_dir(server.data()).unwrap();
    let disk = match SmallDisk::mount(&server.data(), 400) {
        Ok(disk) => disk,
        Err(why) => return skip(&format!("no small disk can be mounted here: {why}")),
    };
    server.launch();
    let ballast = server.data().join("ballast");
    put_ballast(&ballast);
    let mut client = server.connect();
    client
        .batch_execute(
            "create table full_of (id int primary key, filler text not null);
             create table witness (id int primary key);
             insert into witness select i from generate_series(1, 100) i;",
        )
        .unwrap();
    let batch = |from: i32| {
        format!(
            "insert into full_of select i, repeat('f', 1000) from generate_series({from}, {}) i",
            from + 999
        )
    };
    full_log_makes_room(&mut server);
    let mut client = server.connect();
    let mut rows = fill_disk(&server, &mut client, &batch);
    let line = |line: &str| line.contains("sqlstate 53100") && line.contains("insert into full_of");
    assert!(server.log().lines().any(line), "no word of the full disk:\n{}", server.log());
    // Reads work, of old and new sessions.
    for mut reader in [client, server.connect()] {
        assert_eq!(count(&mut reader, "select count(*) from full_of"), i64::from(rows));
        assert_eq!(count(&mut reader, "select count(*) from full_of where id = 500"), 1);
        assert_eq!(count(&mut reader, "select count(*) from witness"), 100);
        assert_eq!(failure(&mut reader, &batch(rows + 1)), SqlState::DISK_FULL);
        // A query that fits in memory works, too. One that spills fails alone and returns its
        // pages.
        let sort =
            "select count(*) from (select row_number() over (order by f.filler) from full_of f, witness) s";
        reader.batch_execute("set work_mem = '64kB'").unwrap();
        assert_eq!(count(&mut reader, "select count(*) from (select distinct id from witness) s"), 100);
        assert_eq!(failure(&mut reader, sort), SqlState::DISK_FULL);
        assert_eq!(count(&mut reader, "select count(*) from (select distinct id from witness) s"), 100);
    }
    // Killed while the disk is full, it comes back with every row.
    server.crash();
    server.launch();
    let mut client = server.connect();
    assert_eq!(count(&mut client, "select count(*) from full_of"), i64::from(rows));

    fs::remove_file(&ballast).unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while let Err(error) = client.batch_execute(&batch(rows + 1)) {
        assert_eq!(error.code(), Some(&SqlState::DISK_FULL), "{error}");
        assert!(Instant::now() < deadline, "there is room again, and still: {error:?}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    rows += 1000;
    client.batch_execute("insert into witness values (101)").unwrap();
    server.crash();
    server.launch();
    let mut client = server.connect();
    assert_eq!(count(&mut client, "select count(*) from full_of"), i64::from(rows));
    assert_eq!(
        count(&mut client, "select count(*) from full_of where filler = repeat('f', 1000)"),
        i64::from(rows)
    );
    assert_eq!(count(&mut client, "select count(*) from witness"), 101);
    drop(client);
    server.stop();
    server.check();
    drop(disk);
}

/// A dropped tree has damaged inner nodes: the rest is freed, and the log names what stays.
#[test]
fn the_log_names_a_dropped_table_with_a_damaged_inner_page() {
    const INNER: u8 = 3;
    let mut server = Server::start(&[]);
    server.psql(
        "create table torn (id int primary key, filler text not null);
         insert into torn select i, repeat('t', 1000) from generate_series(1, 3000) i;
         create table sound (id int primary key, filler text not null);
         insert into sound select i, repeat('s', 1000) from generate_series(1, 3000) i;",
    );
    server.stop();
    // The inner node above the leaves of `torn`: its leaves hold nothing but t's.
    let pages = fs::read(server.data().join("pages")).unwrap();
    let tree_of = |page: &[u8]| u32::from_le_bytes(page[16..20].try_into().unwrap());
    let of_torn = |page: &&[u8]| page.windows(100).any(|bytes| bytes.iter().all(|byte| *byte == b't'));
    let leaf = pages.chunks_exact(PAGE).filter(|page| page[KIND] == LEAF).find(of_torn);
    let tree = tree_of(leaf.expect("a leaf of torn"));
    let inner = pages.chunks_exact(PAGE).position(|page| page[KIND] == INNER && tree_of(page) == tree);
    let inner = inner.expect("an inner node of torn") as u64;
    flip(&server.data().join("pages"), inner * PAGE as u64 + 4000);

    server.launch();
    server.psql("drop table torn");
    server.psql("drop table sound");
    let reports = |log: &str| log.lines().filter(|line| line.contains("cannot be freed")).count();
    let deadline = Instant::now() + Duration::from_secs(60);
    while reports(&server.log()) == 0 {
        assert!(Instant::now() < deadline, "nothing is logged\n{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    // Trees dropped before and after are freed, and the log does not repeat the message.
    server.psql("create table again (id int primary key); drop table again");
    assert_eq!(server.psql("select count(*) from pg_class where relname in ('torn', 'sound')"), "0");
    server.stop();
    let log = server.log();
    assert_eq!(reports(&log), 1, "{log}");
    assert!(
        log.contains(&format!("dropped tree {tree} ")) && log.contains(&format!("page {inner}")),
        "{log}"
    );

    let output = allcore().arg("check").arg("--data").arg(server.data()).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("dropped tree {tree} ")), "{said}");
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or_default();
    assert!(last.starts_with("allcore: ") && last.contains("faults found"), "{said}");
}

#[test]
fn pages_of_a_dropped_table_are_used_again() {
    let mut server = Server::start(&[]);
    let size = |server: &Server| fs::metadata(server.data().join("pages")).unwrap().len();
    let fill = "create table filled (id int primary key, note text not null);
                create index filled_note on filled (note);
                insert into filled select i, repeat('n', 200) || i from generate_series(1, 20000) i;";
    let mut after_first = 0;
    for round in 0..10 {
        match round % 3 {
            0 => {
                server.psql(fill);
                server.psql("drop table filled");
            }
            1 => {
                server.psql(fill);
                server.psql("truncate filled");
                assert_eq!(server.psql("select count(*) from filled"), "0");
                server.psql("drop table filled");
            }
            _ => {
                server.psql("create database other");
                server.psql_in("other", fill);
                server.psql("drop database other");
            }
        }
        settle(&mut server);
        server.launch();
        if round == 0 {
            after_first = size(&server);
            assert!(after_first > 4 << 20, "the table is too small to tell: {after_first}");
        }
    }
    let last = size(&server);
    // As large as one round needs, and a little: the file grows by a sixteenth of itself.
    assert!(last <= after_first + after_first / 2, "grew from {after_first} to {last}");
    server.stop();
    server.check();
}

#[test]
fn asynchronous_commits_are_lost_from_the_end_only() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    client
        .batch_execute(
            "create table one (id int primary key);
             create table two (id int primary key, copy int not null);
             create index two_copy on two (copy);
             set synchronous_commit = off",
        )
        .unwrap();
    let mut next = 1;
    let write = |client: &mut postgres::Client, next: &mut i32, transactions: i32| {
        for id in *next..*next + transactions {
            client
                .batch_execute(&format!(
                    "begin; insert into one values ({id}); insert into two values ({id}, {id}); commit"
                ))
                .unwrap();
        }
        *next += transactions;
        i64::from(*next - 1)
    };
    let acknowledged = write(&mut client, &mut next, 500);
    server.stop();
    server.launch();
    let mut client = server.connect();
    assert_eq!(count(&mut client, "select count(*) from one"), acknowledged, "lost by a clean stop");
    for round in 0..3 {
        client.batch_execute("set synchronous_commit = off").unwrap();
        let early = write(&mut client, &mut next, 200);
        if round == 0 {
            // Far longer than such a commit may take to reach the disk by itself.
            std::thread::sleep(Duration::from_secs(3));
        } else {
            // A commit that waits for the disk takes those before it along.
            server.psql("create table if not exists third (); drop table third");
        }
        let late = write(&mut client, &mut next, 200);
        server.crash();
        server.launch();
        client = server.connect();
        let present = count(&mut client, "select count(*) from one");
        assert!(present >= early, "{present} of {early} old commits are left");
        assert!(present <= late);
        // Lost from the end: no hole, and both tables and the index alike.
        assert_eq!(count(&mut client, "select max(id)::bigint from one"), present);
        assert_eq!(count(&mut client, "select count(*) from two where copy >= 0"), present);
        let alike = "select count(*) from one, two where one.id = two.id and two.copy = one.id";
        assert_eq!(count(&mut client, alike), present);
        next = present as i32 + 1;
    }
    // A later commit that waits for the disk takes along the earlier ones that did not wait.
    client.batch_execute("set synchronous_commit = off").unwrap();
    let all = write(&mut client, &mut next, 100);
    client.batch_execute("set synchronous_commit = on; insert into two values (0, 0)").unwrap();
    server.crash();
    server.launch();
    client = server.connect();
    assert_eq!(count(&mut client, "select count(*) from one"), all);
    drop(client);
    server.stop();
    server.check();
}

#[test]
fn a_row_or_value_beyond_the_limits_is_refused_plainly() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    client.batch_execute("create table wide (id int primary key, note text, label text)").unwrap();
    client.batch_execute("create index wide_label on wide (label)").unwrap();
    client.batch_execute("insert into wide values (1, 'small', 'small')").unwrap();
    // So many columns that not even pointers to their values fit into a row.
    let columns: Vec<String> = (0..250).map(|i| format!("c{i} text")).collect();
    let values = vec!["repeat('x', 30)"; 250].join(", ");
    client.batch_execute(&format!("create table many (id int primary key, {})", columns.join(", "))).unwrap();
    let all = (0..250).map(|i| format!("c{i} = repeat('x', 30)")).collect::<Vec<_>>().join(", ");
    client.batch_execute("insert into many values (1, 'small')").unwrap();
    let too_big = SqlState::PROGRAM_LIMIT_EXCEEDED;
    for (sql, words) in [
        (format!("insert into many values (2, {values})"), "row is too big"),
        (format!("update many set {all}"), "row is too big"),
        ("insert into wide values (2, 'x', repeat('x', 1100))".to_owned(), "index row"),
        ("update wide set label = repeat('x', 2000) where id = 1".to_owned(), "index row"),
    ] {
        let error = client.batch_execute(&sql).expect_err(&sql);
        assert_eq!(error.code(), Some(&too_big), "{sql}: {error:?}");
        let message = error.as_db_error().unwrap().message();
        assert!(message.contains(words), "{sql}: {message}");
    }
    let big = "y".repeat(1 << 20);
    let row = client.query_one("select length($1), length($1 || $1), md5($1) = md5($1)", &[&big]).unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i32>(1)), (1 << 20, 2 << 20));
    let echoed: String = client.query_one("select upper($1)", &[&big]).unwrap().get(0);
    assert!(echoed.len() == 1 << 20 && echoed.bytes().all(|byte| byte == b'Y'));
    // The refused statement left nothing behind.
    let rows = client.query("select id, note, label from wide", &[]).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].get::<_, i32>(0), rows[0].get::<_, &str>(1)), (1, "small"));
    let rows = client.query("select c0, c1 from many", &[]).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].get::<_, &str>(0), rows[0].get::<_, Option<&str>>(1)), ("small", None));
    drop(client);
    server.stop();
    server.check();
}

#[test]
fn tables_by_the_hundred_leave_no_page_behind() {
    let mut server = Server::start(&[]);
    let mut client = server.connect();
    let create: String = (0..500)
        .map(|i| format!("create table t{i} (id int primary key, note text unique); insert into t{i} values ({i}, 'n');"))
        .collect();
    let drop_all: String = (0..500).map(|i| format!("drop table t{i};")).collect();
    client.batch_execute(&format!("begin; {create}")).unwrap();
    client.batch_execute("rollback").unwrap();
    let tables = "select count(*) from pg_class where relname like 't%' and relkind = 'r' and oid >= 16384";
    assert_eq!(count(&mut client, tables), 0);
    client.batch_execute(&format!("begin; {create} commit")).unwrap();
    assert_eq!(count(&mut client, tables), 500);
    client.batch_execute(&format!("begin; {drop_all}")).unwrap();
    client.batch_execute("rollback").unwrap();
    assert_eq!(count(&mut client, "select id::bigint from t499"), 499);
    client.batch_execute(&drop_all).unwrap();
    for i in 0..20 {
        client.batch_execute(&format!("create database d{i}")).unwrap();
        server.psql_in(&format!("d{i}"), "create table t (id int primary key); insert into t values (1)");
    }
    for i in 0..20 {
        client.batch_execute(&format!("drop database d{i}")).unwrap();
    }
    drop(client);
    server.stop();
    server.check();
}

#[test]
fn definitions_killed_half_way_leave_no_page_behind() {
    let work = "create table a (id int primary key, note text unique);
                insert into a select i, repeat('n', 300) || i from generate_series(1, 3000) i;
                begin; create table b (id int primary key, note text); insert into b values (1, 'b'); rollback;
                truncate a; drop table a;";
    for (point, hits) in [
        ("sql.tree.listed", &[1, 2, 4][..]),
        ("sql.tree.made", &[1, 2, 4]),
        ("sql.tree.freed_part", &[1, 2, 3, 5]),
        ("sql.tree.freed", &[1, 3]),
        ("txn.commit.appended", &[2, 5, 9, 14]),
    ] {
        let mut server = Server::start(&[]);
        server.psql("create table kept (id int primary key); insert into kept values (1)");
        settle(&mut server);
        server.launch();
        for hit in hits {
            server.stop();
            server.environment("ALLCORE_STOP", Some(&format!("{point}=kill@{hit}")));
            server.launch_unready();
            let deadline = Instant::now() + Duration::from_secs(120);
            let mut command = server.client("psql");
            command.args(["-X", "-q", "-c", "drop table if exists a"]);
            for statement in work.split_inclusive(";\n") {
                command.args(["-c", statement]);
            }
            while !server.wait_end(Duration::from_millis(1)) {
                assert!(Instant::now() < deadline, "{point}@{hit} was never reached");
                let _ = command.output().unwrap();
            }
            server.environment("ALLCORE_STOP", None);
            succeed(allcore().arg("check").arg("--data").arg(server.data()), &format!("{point}@{hit}"));
            server.launch();
            assert_eq!(server.psql("select count(*) from kept"), "1");
        }
    }
}

#[test]
fn loads_killed_half_way_leave_no_page_behind() {
    let rows = "select i, repeat('n', 50) || i from generate_series(1, 30000) i";
    let work = [
        (format!("create table a as {rows}"), 150),
        (format!("begin; create table a (id int primary key, note text); insert into a {rows}; commit"), 150),
        (format!("begin; truncate kept; insert into kept {rows}; commit"), 150),
        ("alter table kept add primary key (id)".to_owned(), 150),
        ("create index on kept (note)".to_owned(), 50),
    ];
    // A pool smaller than what is built, so that pages of it are on disk already.
    let mut server = Server::start(&["--buffers", "4MiB"]);
    server.psql("create table kept (id int, note text)");
    server.psql(&format!("insert into kept {rows} order by i desc"));
    settle(&mut server);
    server.launch();
    for (statement, late) in work {
        for hit in [1, 2, late] {
            server.stop();
            server.environment("ALLCORE_STOP", Some(&format!("btree.build.appended=kill@{hit}")));
            server.launch_unready();
            let deadline = Instant::now() + Duration::from_secs(120);
            while !server.wait_end(Duration::from_millis(1)) {
                assert!(Instant::now() < deadline, "{statement}@{hit}: no page was appended");
                let _ = server.client("psql").args(["-X", "-q", "-c", &statement]).output().unwrap();
            }
            server.environment("ALLCORE_STOP", None);
            let context = format!("{statement}@{hit}");
            assert!(!server.log().contains("did not start"), "{context}: {}", server.log());
            succeed(allcore().arg("check").arg("--data").arg(server.data()), &context);
            server.launch();
            assert_eq!(server.psql("select count(*), sum(id) from kept"), "30000|450015000", "{context}");
            assert_eq!(server.psql("select to_regclass('a') is null"), "t", "{context}");
        }
    }
    server.psql("alter table kept add primary key (id)");
    assert_eq!(server.psql("select length(note) from kept where id = 29999"), "55");
    server.stop();
    server.check();
}
