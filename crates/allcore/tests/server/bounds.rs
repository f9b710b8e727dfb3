//! A session that asks for too much memory fails its own statement (53200). The server stays below
//! its bound, another session goes on, and the memory is given back.

mod kept;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::Server;
use postgres::{Client, SimpleQueryMessage};

/// The server's `--memory`, in MiB; one session may hold half of it.
const MEMORY: u64 = 128;
const BUFFERS: u64 = 32;
/// The program itself, stacks, the page table, and memory that is free and not given back yet.
const BESIDE: u64 = 110;
/// Conditions come true within this, or the test fails.
const LIMIT: Duration = Duration::from_secs(120);

fn start() -> Server {
    let (memory, buffers) = (format!("{MEMORY}MiB"), format!("{BUFFERS}MiB"));
    // ANALYZE's memory would count for that of the statements.
    Server::start(&["--memory", &memory, "--buffers", &buffers, "--cores", "2", "--autoanalyze", "off"])
}

/// A line of the process's status, in MiB.
fn status(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[track_caller]
fn assert_bounded(server: &Server, what: &str) {
    let peak = status(server, "VmHWM:");
    let most = MEMORY + BUFFERS + BESIDE;
    assert!(peak <= most, "{what}: {peak} MiB were resident, at most {most} may be\n{}", server.log());
}

/// The SQLSTATE a text fails with, or the first column of its last row.
fn run(client: &mut Client, text: &str) -> Result<String, String> {
    match client.simple_query(text) {
        Ok(messages) => {
            let last = messages.iter().rev().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("null").to_owned()),
                _ => None,
            });
            Ok(last.unwrap_or_default())
        }
        Err(fault) => Err(fault.code().map_or_else(|| fault.to_string(), |code| code.code().to_owned())),
    }
}

/// Runs `body` while another session inserts row after row and is never disturbed.
fn beside(server: &Server, body: impl FnOnce()) {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let mut other = server.connect();
    other.batch_execute("create table if not exists beside (i int primary key); truncate beside").unwrap();
    let over = AtomicBool::new(false);
    let rows = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let mut rows = 0;
            loop {
                other.execute("insert into beside values ($1)", &[&rows]).unwrap();
                rows += 1;
                if over.load(Ordering::Relaxed) {
                    return (rows, other);
                }
            }
        });
        {
            let _over = Over(&over);
            body();
        }
        let (rows, mut other) = work.join().unwrap();
        let found: i64 = other.query_one("select count(*) from beside", &[]).unwrap().get(0);
        assert_eq!(found, i64::from(rows));
        rows
    });
    assert!(rows > 0);
}

/// The answer to a statement past its memory.
const REFUSED: Result<&str, &str> = Err("53200");

/// Runs each text in a session, which is of use afterwards.
fn try_all(cases: &[(&str, Result<&str, &str>)]) {
    let server = start();
    beside(&server, || {
        let mut client = server.connect();
        for (text, expected) in cases {
            let shown: String = text.chars().take(200).collect();
            let done = run(&mut client, text);
            assert_eq!(done.as_deref().map_err(String::as_str), *expected, "{shown}");
            assert_bounded(&server, &shown);
            assert_eq!(run(&mut client, "rollback; select 1"), Ok("1".to_owned()), "{shown}");
        }
    });
    assert_bounded(&server, "all of them");
}

#[test]
fn a_value_too_large_for_memory_is_refused_before_it_is_built() {
    let numbers: String = (0..60_000).map(|n| format!("({n}),")).collect();
    let values = format!("select count(*) from (values {}(0)) v", numbers);
    let nested = |text: &str| text.replace("{}", &format!("{}x{}", "row('a', ".repeat(40), ")".repeat(40)));
    try_all(&[
        ("select array_length(string_to_array(repeat('a,', 20000000), ','), 1)", REFUSED),
        ("select length(encode(repeat('a', 40000000)::bytea, 'hex'))", REFUSED),
        ("select length(repeat('a', 1000000000))", REFUSED),
        ("select length(lpad('a', 200000000))", REFUSED),
        ("select length(replace(repeat('a', 10000000), 'a', 'bcdefghi'))", REFUSED),
        ("select length(upper(repeat('a', 25000000)))", REFUSED),
        ("select length(repeat('a', 30000000) || repeat('b', 30000000))", REFUSED),
        ("select length(repeat('a', 10000000))", Ok("10000000")),
        // The escapes of nested rows double with each level.
        (&nested("select length(({})::text) from (values (1)) v (x)"), REFUSED),
        (&nested("select {} from (values (1)) v (x)"), REFUSED),
        (&nested("select length(concat('a', {})) from (values (1)) v (x)"), REFUSED),
        // A sort holds one row of each run it reads.
        (
            "select count(*) from (select repeat('a', 2000000) || n as x from generate_series(1, 60) n order by x) s",
            Ok("60"),
        ),
        (&values, REFUSED),
        ("select sum(n) from (values (1), (2), (3)) v (n)", Ok("6")),
    ]);
}

#[test]
fn states_that_grow_row_by_row_end_their_statement_alone() {
    try_all(&[
        (
            "select count(*) from (select array_agg(repeat('x', 1000) || n) from generate_series(1, 200000) n \
             group by n % 1000) s",
            REFUSED,
        ),
        ("select length(string_agg(repeat('x', 10000), '')) from generate_series(1, 20000)", REFUSED),
        (
            "with recursive r (n, t) as (select 1, 'x' union select n + 1, t || t from r where n < 40) \
             select max(n) from r",
            REFUSED,
        ),
        // These go to temporary pages, whatever the setting asks for.
        ("set work_mem = '1000GB'", Ok("")),
        (
            "select count(*) from (select md5(n::text) as m from generate_series(1, 300000) n order by m) s",
            Ok("300000"),
        ),
        (
            "with recursive r (n) as (select 1 union select n + 1 from r where n < 100000) select count(*) from r",
            Ok("100000"),
        ),
    ]);
}

#[test]
fn open_cursors_count_and_go_to_temporary_pages() {
    let server = start();
    beside(&server, || {
        let mut client = server.connect();
        client.batch_execute("begin").unwrap();
        for number in 0..60 {
            let text = format!(
                "declare c{number} cursor with hold for select n, repeat('x', 1000) from generate_series(1, 3000) n"
            );
            client.batch_execute(&text).unwrap();
        }
        client.batch_execute("commit").unwrap();
        for number in 0..60 {
            assert_eq!(
                run(&mut client, &format!("move 2999 c{number}; fetch c{number}")),
                Ok("3000".to_owned())
            );
        }
        assert_bounded(&server, "60 cursors of 3 MB");
    });
}

/// A session that speaks bytes, past its login.
fn raw(server: &Server) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    logged_in(socket)
}

fn logged_in<S: Read + Write>(mut socket: S) -> S {
    let body = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    socket.write_all(&(body.len() as u32 + 4).to_be_bytes()).unwrap();
    socket.write_all(body).unwrap();
    while answer(&mut socket).0 != b'Z' {}
    socket
}

/// The server's next message.
fn answer(socket: &mut impl Read) -> (u8, Vec<u8>) {
    let mut head = [0; 5];
    socket.read_exact(&mut head).unwrap();
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let mut body = vec![0; length - 4];
    socket.read_exact(&mut body).unwrap();
    (head[0], body)
}

#[test]
fn unfinished_messages_are_bounded_together() {
    const MESSAGE: usize = 20 << 20;
    let server = start();
    beside(&server, || {
        let part = vec![b'x'; 16 << 20];
        let mut sockets: Vec<TcpStream> = (0..16).map(|_| raw(&server)).collect();
        for socket in &mut sockets {
            socket.write_all(b"Q").unwrap();
            socket.write_all(&(MESSAGE as u32 + 4).to_be_bytes()).unwrap();
            // The server throws away input that it has no memory for, so that this does not wait
            // for ever.
            socket.write_all(&part).unwrap();
        }
        assert_bounded(&server, "16 messages of 20 MiB");
        // Every client is answered when its message is whole: that there is no memory, or what is
        // wrong with it.
        let mut refused = 0;
        for socket in &mut sockets {
            socket.write_all(&vec![b'x'; MESSAGE - part.len() - 1]).unwrap();
            socket.write_all(b"\0").unwrap();
            let (kind, body) = answer(socket);
            let said = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(kind, b'E', "{said}");
            refused += u32::from(said.contains("C53200"));
            assert!(said.contains("C53200") || said.contains("C42601"), "{said}");
            if !said.starts_with("SFATAL") {
                assert_eq!(answer(socket).0, b'Z');
            }
        }
        assert!(refused > 0, "16 messages of 20 MiB fit {MEMORY} MiB");
        let mut client = server.connect();
        assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
    });
    assert_bounded(&server, "16 messages of 20 MiB, whole");
}

/// Sessions that each hold less than a statement that would be stopped for its size, and together
/// far more than there is.
const MANY: usize = 400;

fn start_for_many() -> Server {
    let (memory, buffers) = (format!("{MEMORY}MiB"), format!("{BUFFERS}MiB"));
    let sessions = (MANY + 20).to_string();
    Server::start(&[
        "--memory",
        &memory,
        "--buffers",
        &buffers,
        "--cores",
        "2",
        "--max-connections",
        &sessions,
    ])
}

/// A message with its head.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], &length[..], body].concat()
}

/// Waits until the memory that sessions hold is within the limit again, and no session works.
fn settled(server: &Server) {
    let mut client = server.connect();
    let text = "select count(*) from pg_stat_activity where pid <> pg_backend_pid() and state = 'active' \
                and wait_event is distinct from 'ClientWrite' and query not like '%beside%'";
    let deadline = Instant::now() + LIMIT;
    let mut quiet = 0;
    while quiet < 5 {
        quiet = if run(&mut client, text) == Ok("0".to_owned()) { quiet + 1 } else { 0 };
        assert!(Instant::now() < deadline, "sessions work for ever");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn results_that_nobody_reads_are_bounded_together() {
    let server = start_for_many();
    beside(&server, || {
        // The kernel takes megabytes for a socket of TCP, and 90 KiB for a Unix socket.
        let path = server.folder.path().join(format!(".s.PGSQL.{}", server.port));
        let connect = |_| logged_in(UnixStream::connect(&path).unwrap());
        let mut sockets: Vec<UnixStream> = (0..MANY).map(connect).collect();
        let text = b"select repeat('a', 300000) from generate_series(1, 1000)\0";
        for socket in &mut sockets {
            socket.write_all(&message(b'Q', text)).unwrap();
        }
        settled(&server);
        assert_bounded(&server, "results of 300 kB rows that nobody reads");
        let mut client = server.connect();
        assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
        drop(sockets);
        // All of it is there again for one that needs much.
        let deadline = Instant::now() + LIMIT;
        while run(&mut client, "select length(repeat('a', 15000000))") != Ok("15000000".to_owned()) {
            assert!(Instant::now() < deadline, "no memory is given back");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    assert_bounded(&server, "results that nobody read");
}

/// The kernel's memory for a socket is no memory of the statement.
#[test]
fn a_large_result_needs_little_memory_of_its_own() {
    let server = start();
    let mut client = server.connect();
    client.batch_execute("set statement_memory = '1MB'").unwrap();
    let rows = client.query("select repeat('x', 1000) from generate_series(1, 60000)", &[]).unwrap();
    assert_eq!(rows.len(), 60_000);
}

#[test]
fn half_sent_messages_of_many_sessions_are_bounded_together() {
    const MESSAGE: usize = 800_000;
    let server = start_for_many();
    beside(&server, || {
        let mut sockets: Vec<TcpStream> = (0..MANY).map(|_| raw(&server)).collect();
        let part = vec![b'x'; 600_000];
        for socket in &mut sockets {
            socket.write_all(b"Q").unwrap();
            socket.write_all(&(MESSAGE as u32 + 4).to_be_bytes()).unwrap();
            socket.write_all(&part).unwrap();
        }
        settled(&server);
        assert_bounded(&server, "messages of 600 of 800 kB");
        let mut refused = 0;
        for socket in &mut sockets {
            socket.write_all(&vec![b'x'; MESSAGE - part.len() - 1]).unwrap();
            socket.write_all(b"\0").unwrap();
            let (kind, body) = answer(socket);
            let said = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(kind, b'E', "{said}");
            assert!(said.starts_with("SERROR"), "{said}");
            refused += u32::from(said.contains("C53200"));
            assert!(said.contains("C53200") || said.contains("C42601"), "{said}");
            assert_eq!(answer(socket).0, b'Z');
        }
        assert!(refused > 0, "{MANY} messages of {MESSAGE} bytes fit {MEMORY} MiB");
    });
    assert_bounded(&server, "messages of 800 kB");
}

#[test]
fn portals_of_many_sessions_are_bounded_together() {
    let server = start_for_many();
    beside(&server, || {
        let path = server.folder.path().join(format!(".s.PGSQL.{}", server.port));
        let connect = |_| logged_in(UnixStream::connect(&path).unwrap());
        let mut sockets: Vec<UnixStream> = (0..MANY).map(connect).collect();
        let mut opening = message(b'Q', b"begin\0");
        opening.extend(message(b'P', b"s\0select $1::text\0\0\0"));
        for number in 0..1000 {
            let head = format!("p{number}\0s\0\0\0\0\x01\0\0\x02\0").into_bytes();
            opening.extend(message(b'B', &[&head[..], &[b'x'; 512], b"\0\0"].concat()));
        }
        opening.extend(message(b'S', b""));
        for socket in &mut sockets {
            socket.write_all(&opening).unwrap();
        }
        settled(&server);
        assert_bounded(&server, "1,000 portals of each session");
        let mut client = server.connect();
        assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
        drop(sockets);
    });
    assert_bounded(&server, "portals of many sessions");
}

#[test]
fn plans_are_bounded_by_their_bytes_and_large_ones_run_once_are_not_kept() {
    let server = start();
    let mut client = server.connect();
    client.batch_execute("create table t (i int, v text)").unwrap();
    let before = status(&server, "VmRSS:");
    for round in 0..60 {
        let rows: Vec<String> = (0..2000).map(|n| format!("({n}, lower('v{round}'))")).collect();
        // A text that differs by more than its literals.
        let text = format!("insert into t as t{round} (i, v) values {}", rows.join(","));
        assert_eq!(run(&mut client, &text), Ok(String::new()));
    }
    given_back(&server, before + 40, "60 inserts of 2,000 rows");
    assert_bounded(&server, "60 inserts of 2,000 rows");
}

#[test]
fn compiled_patterns_are_bounded_by_their_bytes() {
    let server = start();
    let mut client = server.connect();
    assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
    let before = status(&server, "VmRSS:");
    beside(&server, || {
        std::thread::scope(|scope| {
            for session in 0..2 {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.connect();
                    for count in 100..106 {
                        let text = format!(r"select 'abc' ~ '^\w{{1,{count}}}{session}$'");
                        assert_eq!(run(&mut client, &text), Ok("f".to_owned()), "{text}");
                    }
                });
            }
        });
    });
    // The core's part is 8 MiB, or the newest expression: about 10 MiB.
    // Fifty of them in one statement, and what they took is free again.
    let text = r"select count(*) from generate_series(1, 50) i where 'abc' ~ ('\w{75}' || i)";
    for _ in 0..2 {
        assert_eq!(run(&mut server.connect(), text), Ok("0".to_owned()));
    }
    given_back(&server, before + 60, "heavy patterns");
    assert_eq!(run(&mut client, "select length(repeat('a', 20000000))"), Ok("20000000".to_owned()));
    assert_bounded(&server, "heavy patterns");
    run(&mut client, "set statement_memory = '16MB'").unwrap();
    let text = r"select 'abc' ~ '^\w{1,255}x$'";
    assert_eq!(run(&mut client, text), Err("53200".to_owned()));
    run(&mut client, "reset statement_memory").unwrap();
    assert_eq!(run(&mut client, text), Ok("f".to_owned()));
}

#[test]
fn long_texts_wait_for_each_other_s_parsing_and_are_not_refused() {
    let server = start();
    beside(&server, || {
        let rows: Vec<String> = (0..5000).map(|n| format!("({n}, 'abc')")).collect();
        let text = format!("select count(*) from (values {}) v", rows.join(","));
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    let mut client = server.connect();
                    for _ in 0..2 {
                        assert_eq!(run(&mut client, &text), Ok("5000".to_owned()));
                    }
                });
            }
        });
    });
    assert_bounded(&server, "long texts of 10 sessions");
}

/// Waits until no more is resident.
#[track_caller]
fn given_back(server: &Server, most: u64, what: &str) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let now = status(server, "VmRSS:");
        if now <= most {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: {now} MiB stay, not {most}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn memory_is_given_back_after_the_statement() {
    let server = start();
    let mut client = server.connect();
    assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
    let before = status(&server, "VmRSS:");
    // Many small pieces, which an allocator likes to keep.
    let text = "select count(*) from (select array_agg(n) from generate_series(1, 100000) n group by n) s";
    run(&mut client, "set work_mem = '16MB'").unwrap();
    let done = run(&mut client, text);
    assert!(done == Ok("100000".to_owned()) || done == Err("53200".to_owned()), "{done:?}");
    let rows: Vec<String> = (0..8000).map(|n| format!("({n}, 'v')")).collect();
    let text = format!("select count(*) from (values {}) v", rows.join(","));
    assert_eq!(run(&mut client, &text), Ok("8000".to_owned()));
    given_back(&server, before + 40, "small pieces");
}

#[test]
fn the_limit_is_a_setting_of_the_session() {
    let server = start();
    let mut client = server.connect();
    assert_eq!(run(&mut client, "show statement_memory"), Ok("64MB".to_owned()));
    let text = "select length(repeat('a', 4000000))";
    assert_eq!(run(&mut client, text), Ok("4000000".to_owned()));
    run(&mut client, "set statement_memory = '4MB'").unwrap();
    assert_eq!(run(&mut client, text), Err("53200".to_owned()));
    run(&mut client, "reset statement_memory").unwrap();
    assert_eq!(run(&mut client, text), Ok("4000000".to_owned()));
    assert_eq!(run(&mut client, "set statement_memory = '1kB'"), Err("22023".to_owned()));
}

#[test]
fn the_largest_of_many_is_stopped_and_the_others_go_on() {
    let server = start();
    beside(&server, || {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut client = server.connect();
                    for _ in 0..10 {
                        let text = "select length(string_agg(repeat('x', 10000), '')) \
                                    from generate_series(1, 4000)";
                        let done = run(&mut client, text);
                        assert!(
                            done == Ok("40000000".to_owned()) || done == Err("53200".to_owned()),
                            "{done:?}"
                        );
                    }
                });
            }
        });
    });
    assert_bounded(&server, "8 sessions of 40 MB");
}

#[test]
fn locks_checks_and_keys_count_and_leave_nothing_behind() {
    let server = start();
    let mut client = server.connect();
    run(
        &mut client,
        "create table many (i int primary key); insert into many select generate_series(1, 200000); \
         create table parents (i int primary key); create table children (i int references parents)",
    )
    .unwrap();
    run(&mut client, "set statement_memory = '4MB'").unwrap();
    let cases = [
        // Locks of rows and of numbers.
        ("begin; select count(*) from (select i from many for update) s", REFUSED),
        ("begin; select count(pg_advisory_xact_lock(n)) from generate_series(1, 200000) n", REFUSED),
        // Rows that are checked at the statement's end.
        ("insert into children select i from many", REFUSED),
        // Keys that are kept in memory alone.
        (
            "with recursive r (n) as (select 1 union select n + 1 from r where n < 200000) select max(n) from r",
            REFUSED,
        ),
        // Keys that go to temporary pages.
        ("select count(*) from (select distinct i from many) s", Ok("200000")),
        ("select count(*) from (select i from many union select i from many) s", Ok("200000")),
        ("select count(*) from many a join many b on a.i = b.i + 1", Ok("199999")),
        ("select count(*) from many where i not in (select i + 1 from many)", Ok("1")),
    ];
    for (text, expected) in cases {
        let shown: String = text.chars().take(100).collect();
        let done = run(&mut client, text);
        assert_eq!(done.as_deref().map_err(String::as_str), expected, "{shown}");
        assert_eq!(run(&mut client, "rollback; select 1"), Ok("1".to_owned()), "{shown}");
        assert_bounded(&server, &shown);
    }
    // Their memory is free again: the session and the server can be asked for as much as before.
    run(&mut client, "reset statement_memory").unwrap();
    assert_eq!(run(&mut client, "select length(repeat('a', 15000000))"), Ok("15000000".to_owned()));
}

#[test]
fn large_messages_and_rows_are_refused_or_fit() {
    let server = start();
    beside(&server, || {
        let mut client = server.connect();
        client.batch_execute("create table t (v text)").unwrap();
        let code = |fault: &postgres::Error| fault.code().map(|code| code.code().to_owned());
        for (size, fits) in [(1 << 20, true), (60 << 20, false)] {
            let value = "x".repeat(size);
            let bound = client.query_one("select length($1::text)", &[&value]);
            match &bound {
                Ok(row) => assert!(fits && row.get::<_, i32>(0) == size as i32, "{size} bound"),
                Err(fault) => assert!(!fits && code(fault).as_deref() == Some("53200"), "{size}: {fault}"),
            }
            let mut copy = client.copy_in("copy t from stdin").unwrap();
            let copied = copy.write_all(value.as_bytes()).and_then(|()| copy.write_all(b"\n"));
            let copied = copied.map_err(|fault| fault.to_string());
            let copied = copied.and_then(|()| copy.finish().map_err(|fault| format!("{:?}", code(&fault))));
            assert_eq!(copied.is_ok(), fits, "{size} copied: {copied:?}");
            assert_bounded(&server, "a large row");
            assert_eq!(run(&mut client, "select 1"), Ok("1".to_owned()));
        }
        // Before it has logged in nobody may send much.
        for _ in 0..20 {
            let mut socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
            // The server may close before all of it is sent.
            let sent = socket
                .write_all(&(100_u32 << 20).to_be_bytes())
                .and_then(|()| socket.write_all(b"\0\x03\0\0"))
                .and_then(|()| socket.write_all(&vec![b'x'; 4 << 20]));
            drop(sent);
            assert_bounded(&server, "start-up packets of 100 MiB");
        }
        assert_eq!(run(&mut client, "select count(*) from t"), Ok("1".to_owned()));
    });
    assert_bounded(&server, "large messages");
}

#[test]
fn two_thousand_cursors_of_a_transaction_are_refused_or_fit() {
    let server = start();
    let mut client = server.connect();
    let texts = |size: usize| {
        let one = |number| {
            format!(
                "declare c{number} cursor for select n, repeat('x', {size}) from generate_series(1, 1000) n; \
                 move c{number};"
            )
        };
        format!("begin; {} select 1", (0..2000).map(one).collect::<String>())
    };
    for size in [1, 2000] {
        let done = run(&mut client, &texts(size));
        assert!(done == Ok("1".to_owned()) || done == Err("53200".to_owned()), "{done:?}");
        assert_bounded(&server, "2,000 cursors");
        assert_eq!(run(&mut client, "rollback; select 1"), Ok("1".to_owned()));
    }
}

#[test]
fn the_issue_s_bombs_are_refused() {
    let rows: String = (0..1_000_000).map(|n| format!("({n}),")).collect();
    let values = format!("select count(*) from (values {rows}(0)) v");
    try_all(&[
        ("select array_length(string_to_array(repeat('a,', 200000000), ','), 1)", REFUSED),
        ("select length(encode(repeat('a', 400000000)::bytea, 'hex'))", REFUSED),
        (&values, REFUSED),
        (
            "select count(*) from (select array_agg(repeat('x', 10000)) from generate_series(1, 1000000) n \
             group by n % 100000) s",
            REFUSED,
        ),
        (
            "with recursive r (n, t) as (select 1, repeat('x', 1000) union select n + 1, t || n from r) \
             select length(string_agg(t, '')) from r",
            REFUSED,
        ),
    ]);
}

/// Several comparisons read one operand. Copies of it would double an expression at each level: 40
/// levels would have a trillion parts.
#[test]
fn nested_operands_of_several_comparisons_are_computed_once() {
    let nested = |inner: &str, level: fn(&str) -> String| {
        let expression = (0..40).fold(inner.to_owned(), |inner, _| level(&inner));
        format!(
            "select ({expression})::text \
             from (values (true, date '2020-01-01', timestamp '2020-01-01')) v (b, d, t)"
        )
    };
    let texts = [
        nested("b", |inner| format!("({inner} in (b, b))")),
        nested("b", |inner| format!("({inner} not in (b, true))")),
        nested("b", |inner| format!("({inner} between b and b)")),
        nested("b", |inner| format!("({inner} between symmetric b and b)")),
        nested("b", |inner| format!("(b between symmetric {inner} and b)")),
        nested("b", |inner| format!("(case {inner} when b then b when not b then b end)")),
        nested("b", |inner| format!("((({inner}, b) in ((b, b), (b, b))))")),
        nested("b", |inner| format!("(({inner}, b) >= (b, b))")),
        nested("b", |inner| format!("((b, b) <= ({inner}, b))")),
        nested("b", |inner| format!("(case when {inner} between b and b then (select b) end)")),
        nested("b", |inner| format!("(case {inner} when b then (select b) when not b then b end)")),
        nested("d", |inner| format!("nullif({inner}, t + interval '1 day')")),
    ];
    let value = |text: &str| if text.contains("nullif") { "2020-01-01" } else { "true" };
    let cases: Vec<(&str, _)> = texts.iter().map(|text| (text.as_str(), Ok(value(text)))).collect();
    try_all(&cases);
}

/// As in PostgreSQL, BETWEEN and IN compute a volatile operand for each comparison. IN computes the
/// further fields of a row for each row whose first field is equal. Such an operand is copied.
#[test]
fn copies_of_copies_of_an_operand_are_refused() {
    let nested = |inner: &str, level: fn(&str) -> String| {
        (0..30).fold(inner.to_owned(), |inner, _| format!("({})", level(&inner)))
    };
    let texts = [
        nested("(random() < 2)", |inner| format!("{inner} between false and true")),
        nested("(random() < 2)", |inner| format!("{inner} in (b, true)")),
        nested("b", |inner| format!("(b, {inner}) in ((b, b), (b, b))")),
    ];
    let mut texts: Vec<String> =
        texts.iter().map(|text| format!("select {text} from (values (true)) v (b)")).collect();
    // Copies of the operand decide whether a subquery of a branch is wanted.
    let operand = vec!["i"; 8_000].join(", ");
    let branches: String = (0..8_000).map(|i| format!("when {i} then (select {i}) ")).collect();
    texts.push(format!("select case coalesce({operand}) {branches} end from (values (1)) v (i)"));
    let cases: Vec<(&str, _)> = texts.iter().map(|text| (text.as_str(), REFUSED)).collect();
    try_all(&cases);
}
