//! Messages that no well-behaved client sends: cut, oversized, out of order, of unknown type. Each
//! ends in a protocol error for its session alone. Other sessions never notice.

use crate::common::Server;
use crate::common::messages::{Message, PROTOCOL, Raw, message, startup, startup_of, summary};
use std::time::Duration;

/// A newer client gets the spoken version, as a whole number, and its unknown options.
#[test]
fn a_newer_version_is_negotiated() {
    let server = Server::start(&[]);
    for (asked, spoken) in [(0, 0), (2, 2), (3, 2)] {
        let mut raw = Raw::connect(&server);
        raw.send(&startup_of(PROTOCOL + asked, b"user\0postgres\0_pq_.colour\0red\0\0"));
        let first = raw.receive().unwrap();
        let mut told = (PROTOCOL + spoken).to_be_bytes().to_vec();
        told.extend([0, 0, 0, 1]);
        told.extend(b"_pq_.colour\0");
        assert_eq!((first.kind, first.body), (b'v', told), "of 3.{asked}");
        raw.until(b'Z');
        assert_eq!(raw.query("select 1").len(), 4);
    }
}

/// The most parameters of a message; their count does not fit a signed 16-bit number.
#[test]
fn parameters_by_the_ten_thousand() {
    const COUNT: u16 = 65_535;
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    let mut parse = format!("\0select $1 + $40000 + ${COUNT}\0").into_bytes();
    parse.extend(COUNT.to_be_bytes());
    (0..COUNT).for_each(|_| parse.extend(23u32.to_be_bytes()));
    let mut bind = b"\0\0\0\0".to_vec();
    bind.extend(COUNT.to_be_bytes());
    (0..COUNT).for_each(|_| bind.extend(b"\0\0\0\x017"));
    bind.extend([0, 0]);
    raw.send(&message(b'P', &parse));
    raw.send(&message(b'B', &bind));
    raw.send(&message(b'E', b"\0\0\0\0\0"));
    raw.send(&message(b'S', b""));
    let answer = raw.until(b'Z');
    let row = answer.iter().find(|m| m.kind == b'D').unwrap_or_else(|| panic!("{answer:?}"));
    assert_eq!(row.body, b"\0\x01\0\0\0\x0221");
}

#[test]
fn after_an_error_all_up_to_sync_is_skipped_a_query_too() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key)");
    let mut raw = Raw::log_in(&server);
    raw.send(&message(b'P', b"\0selec\0\0\0"));
    raw.send(&message(b'Q', b"insert into t values (1)\0"));
    raw.send(&message(b'P', b"\0select 1\0\0\0"));
    raw.send(&message(b'S', b""));
    let kinds: String = raw.until(b'Z').iter().map(|m| m.kind as char).collect();
    assert_eq!(kinds, "EZ");
    assert_eq!(server.psql("select count(*) from t"), "0");
    assert_eq!(raw.query("select 1").len(), 4);
}

/// A COPY whose client is silent can be ended like any statement; the session goes on.
#[test]
fn a_copy_that_waits_for_its_client_can_be_ended() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key)");
    let mut raw = Raw::log_in(&server);
    raw.query("set statement_timeout = '200ms'");
    for partial in [&b""[..], b"1\n2\n"] {
        raw.send(&message(b'Q', b"copy t from stdin\0"));
        raw.until(b'G');
        // The second time half a message: what follows of it is passed over with the rest.
        let data = message(b'd', partial);
        let half = data.len() - partial.len().min(2);
        raw.send(&data[..half]);
        let answer = raw.until(b'Z');
        assert!(answer[0].kind == b'E' && answer[0].text().contains("C57014"), "{answer:?}");
        assert_eq!(answer.last().unwrap().body, b"I");
        raw.send(&data[half..]);
        raw.send(&message(b'c', b""));
        assert_eq!(raw.query("select 1").len(), 4);
    }
    assert_eq!(server.psql("select count(*) from t"), "0");
}

/// A session gives the memory of a long statement back, because it may idle for days.
#[test]
fn a_long_statement_leaves_no_memory_with_its_session() {
    let server = Server::start(&["--buffers", "16MiB"]);
    let long = format!("select length('{}')", "x".repeat(1 << 20));
    Raw::log_in(&server).query(&long);
    let before = settled(&server);
    let many: Vec<Raw> = (0..60)
        .map(|_| {
            let mut raw = Raw::log_in(&server);
            raw.query(&long);
            raw
        })
        .collect();
    let grown = resident(&server).saturating_sub(before);
    assert!(grown < 20 << 10, "{} sessions hold {grown} KiB", many.len());
}

/// Resident memory in KiB.
fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Resident memory once all buffers have been touched, which may take long on a busy machine.
fn settled(server: &Server) -> u64 {
    let (mut before, mut quiet) = (resident(server), 0);
    while quiet < 5 {
        std::thread::sleep(Duration::from_millis(300));
        let now = resident(server);
        quiet = if now <= before + 16 { quiet + 1 } else { 0 };
        before = now;
    }
    before
}

#[test]
fn bytes_that_are_no_messages_end_one_session_with_08p01() {
    let server = Server::start(&[]);
    let mut bystander = Raw::log_in(&server);
    bystander.query("begin");
    let faults: [&[u8]; 7] = [
        b"!\0\0\0\x04",
        b"\0\0\0\0\0",
        b"Q\0\0\0\x03",
        b"Q\xff\xff\xff\xff",
        b"S\x7f\xff\xff\xff",
        b"E\0\x10\0\0",
        b"p\0\0\0\x05\0",
    ];
    for fault in faults {
        let mut raw = Raw::log_in(&server);
        raw.send(fault);
        raw.ends_with("08P01");
    }
    for first in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\0\0\0\0\0", b"\0\0\0\x07\0\x03\0\0"] {
        let mut raw = Raw::connect(&server);
        raw.send(first);
        raw.ends_with("08P01");
    }
    let mut raw = Raw::connect(&server);
    raw.send(&startup(b"user\0postgres"));
    raw.ends_with("08P01");
    assert_eq!(bystander.query("select 1").last().unwrap().body, b"T");
}

#[test]
fn a_faulty_body_fails_its_message_and_the_session_goes_on() {
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    let bodies: [(u8, &[u8]); 9] = [
        (b'P', b"no terminator"),
        (b'P', b"\0select 1\0\0\x05\0\0"),
        (b'B', b"\0\0\0\0\0\x01\0\0\0\xffabc"),
        (b'B', b"\0\0\0\0\xff\xff"),
        (b'D', b"X\0"),
        (b'D', b""),
        (b'E', b"\0"),
        (b'C', b"Z\0"),
        (b'P', b"\0select '\xff\xfe'\0\0\0"),
    ];
    for (kind, body) in bodies {
        raw.send(&message(kind, body));
        // Skipped until Sync, whatever it is.
        raw.send(&message(b'E', b"\0\0\0\0\0"));
        raw.send(&message(b'S', b""));
        let answer = raw.until(b'Z');
        assert_eq!(answer.len(), 2, "{}: {answer:?}", kind as char);
        let code = if body.contains(&0xfe) { "C22021" } else { "C08P01" };
        assert!(answer[0].kind == b'E' && answer[0].text().contains(code), "{}: {answer:?}", kind as char);
    }
    // Fewer or more formats than there are columns.
    raw.send(&message(b'P', b"\0select 1, 2, 3\0\0\0"));
    for (formats, kinds) in [(0, "2DC"), (1, "2DC"), (2, "E"), (3, "2DC"), (4, "E")] {
        let mut bind = b"\0\0\0\0\0\0\0".to_vec();
        bind.extend([formats, 0, 1, 0, 1, 0, 1, 0, 1].iter().take(1 + 2 * usize::from(formats)));
        raw.send(&message(b'B', &bind));
        raw.send(&message(b'E', b"\0\0\0\0\0"));
        raw.send(&message(b'S', b""));
        let answer = raw.until(b'Z');
        let actual: String =
            answer.iter().map(|m| m.kind as char).filter(|kind| !"1Z".contains(*kind)).collect();
        assert_eq!(actual, kinds, "{formats}: {answer:?}");
        if kinds == "E" {
            assert!(answer.iter().any(|m| m.text().contains("C08P01")), "{answer:?}");
        }
    }
    raw.send(&message(b'Q', b"select 'unterminated"));
    assert!(raw.until(b'Z')[0].text().contains("C08P01"));
    assert_eq!(raw.query("select 1").len(), 4);
}

#[test]
fn messages_may_come_byte_by_byte_and_many_at_once() {
    let server = Server::start(&[]);
    let mut raw = Raw::connect(&server);
    for byte in startup(b"user\0postgres\0\0") {
        raw.send(&[byte]);
    }
    raw.until(b'Z');
    for byte in message(b'Q', b"select 42\0") {
        raw.send(&[byte]);
        std::thread::sleep(Duration::from_millis(1));
    }
    let answer = raw.until(b'Z');
    assert_eq!(answer[1].body, b"\0\x01\0\0\0\x0242");
    let mut many = Vec::new();
    for _ in 0..500 {
        many.extend(message(b'Q', b"select 7\0"));
    }
    raw.send(&many);
    for _ in 0..500 {
        assert_eq!(raw.until(b'Z').len(), 4);
    }
    // A statement larger than any buffer of the way.
    let long = format!("select length('{}')", "x".repeat(3_000_000));
    assert_eq!(raw.query(&long)[1].body, b"\0\x01\0\0\0\x073000000");
}

#[test]
fn a_client_that_vanishes_leaves_nothing_behind() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key); insert into t values (1)");
    let mut raw = Raw::log_in(&server);
    raw.query("begin");
    raw.query("update t set id = 2");
    // Cut amid a message, the transaction open.
    raw.send(b"Q\0\0\x10\0sel");
    drop(raw);
    // Its row lock is given up.
    assert_eq!(
        server.psql("set statement_timeout = '60s'; update t set id = 3 where id = 1 returning id"),
        "3"
    );
    let mut flood = Raw::log_in(&server);
    flood.send(&message(b'Q', b"select generate_series(1, 5000000)\0"));
    drop(flood);
    assert_eq!(server.psql("select 1"), "1");
}

#[test]
fn extended_protocol_portals_and_row_limits() {
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    raw.query("begin");
    raw.send(&message(b'P', b"s\0select generate_series(1, $1)\0\0\0"));
    raw.send(&message(b'B', b"p\0s\0\0\0\0\x01\0\0\0\x015\0\x01\0\x01"));
    raw.send(&message(b'D', b"Ss\0"));
    raw.send(&message(b'E', b"p\0\0\0\0\x02"));
    raw.send(&message(b'E', b"p\0\0\0\0\0"));
    raw.send(&message(b'C', b"Pp\0"));
    raw.send(&message(b'S', b""));
    let kinds: String = raw.until(b'Z').iter().map(|m| m.kind as char).collect();
    assert_eq!(kinds, "12tTDDsDDDC3Z");
    // An unknown portal and statement.
    raw.query("rollback");
    for (kind, body, code) in
        [(b'E', &b"nope\0\0\0\0\0"[..], "C34000"), (b'B', b"\0nope\0\0\0\0\0\0\0", "C26000")]
    {
        raw.send(&message(kind, body));
        raw.send(&message(b'S', b""));
        let answer = raw.until(b'Z');
        assert!(answer[0].text().contains(code), "{answer:?}");
    }
}

#[test]
fn past_max_connections_is_refused_with_53300() {
    let server = Server::start(&["--max-connections", "3"]);
    let held: Vec<Raw> = (0..3).map(|_| Raw::log_in(&server)).collect();
    let mut raw = Raw::connect(&server);
    raw.send(&startup(b"user\0postgres\0\0"));
    raw.ends_with("53300");
    drop(held);
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while server.try_connect().is_err() {
        assert!(std::time::Instant::now() < deadline, "places are not given back");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn time_limits_end_statements_and_idle_transactions() {
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    raw.query("set statement_timeout = '100ms'");
    let answer = raw.query("select count(*) from generate_series(1, 1000000000)");
    assert!(answer.iter().any(|m| m.kind == b'E' && m.text().contains("C57014")), "{answer:?}");
    raw.query("set idle_in_transaction_session_timeout = '100ms'");
    raw.query("begin");
    raw.ends_with("25P03");
}

/// A limit begins with a statement's first message, and counts reading, planning and pauses.
#[test]
fn the_time_limit_of_a_statement_begins_with_its_first_message() {
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    let long = format!("select 1 where 0 in (1{})", ", 1 + 0 * (2 + 3)".repeat(60_000));
    raw.query("set statement_timeout = '50ms'");
    let timed_out = |answer: Vec<Message>| {
        let kinds: String = answer.iter().map(|m| m.kind as char).collect();
        assert!(answer.iter().any(|m| m.kind == b'E' && m.text().contains("C57014")), "{kinds} {answer:?}");
    };
    timed_out(raw.query(&long));
    raw.send(&message(b'P', format!("s\0{long}\0\0\0").as_bytes()));
    raw.send(&message(b'S', b""));
    timed_out(raw.until(b'Z'));
    // The time between the messages of one statement is its own, and ends with Sync.
    raw.query("set statement_timeout = '1s'");
    let parse = message(b'P', b"\0select 1\0\0\0");
    let run = [message(b'B', b"\0\0\0\0\0\0\0\0"), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat();
    raw.send(&[parse.clone(), message(b'H', b"")].concat());
    raw.until(b'1');
    std::thread::sleep(Duration::from_millis(1300));
    raw.send(&run);
    timed_out(raw.until(b'Z'));
    raw.send(&[parse, message(b'S', b"")].concat());
    raw.until(b'Z');
    std::thread::sleep(Duration::from_millis(1300));
    raw.send(&run);
    let kinds: String = raw.until(b'Z').iter().map(|m| m.kind as char).collect();
    assert_eq!(kinds, "2DCZ");
    // A portal that has given some rows is not done.
    raw.query("begin");
    let parse = message(b'P', b"\0select generate_series(1, 9)\0\0\0");
    let bind = message(b'B', b"p\0\0\0\0\0\0\0\0");
    let one = message(b'E', b"p\0\0\0\0\x01");
    raw.send(&[parse, bind, one.clone(), message(b'H', b"")].concat());
    raw.until(b's');
    std::thread::sleep(Duration::from_millis(1300));
    raw.send(&[one, message(b'S', b"")].concat());
    timed_out(raw.until(b'Z'));
    raw.query("rollback");
    // An error ends the limit, whatever message it answers.
    raw.send(&[message(b'P', b"\0select 1\0\0\0"), message(b'H', b"")].concat());
    raw.until(b'1');
    raw.send(&message(b'F', &[0; 14]));
    raw.until(b'Z');
    std::thread::sleep(Duration::from_millis(1300));
    assert!(raw.query("select pg_sleep(0.1)").iter().all(|m| m.kind != b'E'));
    // Each statement of a text has a limit of its own.
    let several = "select pg_sleep(0.4); select pg_sleep(0.4); select pg_sleep(0.4)";
    assert!(raw.query(several).iter().all(|m| m.kind != b'E'));
}

#[test]
fn an_idle_connection_costs_at_most_40_kib() {
    let server = Server::start(&["--max-connections", "1100", "--buffers", "16MiB"]);
    server.psql("create table t (id int primary key); insert into t values (1)");
    let use_one = |raw: &mut Raw| {
        raw.query("select * from t where id = 1");
        raw.send(&message(b'P', b"s\0select * from t where id = $1\0\0\0"));
        raw.send(&message(b'B', b"\0s\0\0\0\0\x01\0\0\0\x011\0\0"));
        raw.send(&message(b'E', b"\0\0\0\0\0"));
        raw.send(&message(b'S', b""));
        raw.until(b'Z');
    };
    let mut first = Raw::log_in(&server);
    use_one(&mut first);
    let before = settled(&server);
    let many: Vec<Raw> = (0..1000)
        .map(|_| {
            let mut raw = Raw::log_in(&server);
            use_one(&mut raw);
            raw
        })
        .collect();
    let each = resident(&server).saturating_sub(before) * 1024 / many.len() as u64;
    println!("an idle connection that has run statements costs {each} bytes resident");
    assert!(each <= 40 * 1024, "{each} bytes resident a connection");
}

/// SHOW returns the limit in force.
#[test]
fn the_limit_of_connections_is_shown() {
    let server = Server::start(&["--max-connections", "7"]);
    assert_eq!(server.psql("show max_connections"), "7");
    assert_eq!(server.psql("select setting from pg_settings where name = 'max_connections'"), "7");
    let held: Vec<Raw> = (0..7).map(|_| Raw::log_in(&server)).collect();
    let mut late = Raw::connect(&server);
    late.send(&startup(b"user\0postgres\0\0"));
    late.ends_with("53300");
    drop(held);
}

/// A row that no message holds is refused, and the session goes on.
#[test]
fn a_row_beyond_a_gibibyte_is_refused() {
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    let answer = raw.query("select repeat('x', 600000000), repeat('y', 600000000)");
    assert_eq!(summary(&answer), ["T", "E C54000", "Z I"]);
    let said = answer[1].text();
    assert!(said.contains("containing 600000010 bytes by 600000000 more"), "{said}");
    assert_eq!(raw.query("select 1").len(), 4);
}
