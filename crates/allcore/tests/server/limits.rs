//! Limits on a session that idles, keeps a transaction open or keeps the log, and the messages
//! about them in the log.

use crate::common::raw::{Said, startup};
use crate::common::{Server, pid};
use std::collections::HashSet;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

fn wait_for_log(server: &Server, words: &str) {
    let deadline = Instant::now() + LIMIT;
    while !server.log().contains(words) {
        assert!(Instant::now() < deadline, "no word of {words:?} in:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Logs in and sends statements, each answered before the next; gives what the server says until it
/// closes.
fn until_ended(server: &Server, statements: &[&str]) -> String {
    let mut said = Said::connect(server.port);
    said.send(&startup("postgres", "postgres"));
    said.until(b'Z');
    for statement in &statements[..statements.len() - 1] {
        said.query(statement);
        said.until(b'Z');
    }
    said.query(statements[statements.len() - 1]);
    let messages = said.until_end();
    let code = Said::code(&messages).unwrap_or_else(|| panic!("{statements:?}: {messages:?}"));
    let last = messages.iter().rfind(|(kind, _)| *kind == b'E').unwrap();
    assert!(last.1.starts_with(b"SFATAL\0"), "{messages:?}");
    code
}

#[test]
fn sessions_that_idle_or_keep_a_transaction_too_long_are_ended() {
    let server = Server::start(&[]);
    for (statements, code) in [
        (&["set idle_session_timeout = 50", "select 1"][..], "57P05"),
        (&["set idle_in_transaction_session_timeout = 50", "begin"], "25P03"),
        (&["set idle_in_transaction_session_timeout = 50", "begin", "select 1/0"], "22012"),
        (&["set transaction_timeout = 50", "begin"], "25P04"),
        (&["set transaction_timeout = 50", "select pg_sleep(1000)"], "25P04"),
        (&["begin", "set transaction_timeout = 50"], "25P04"),
        (&["begin; savepoint s", "set local transaction_timeout = 50"], "25P04"),
    ] {
        assert_eq!(until_ended(&server, statements), code, "{statements:?}");
    }
    wait_for_log(&server, "FATAL: terminating connection due to transaction timeout");
    wait_for_log(&server, "FATAL: terminating connection due to idle-session timeout");
    // As a session's first setting, for all.
    let server = Server::start(&["--set", "transaction_timeout=5min"]);
    assert_eq!(server.psql("show transaction_timeout"), "5min");
}

/// A client that sends its next message byte by byte idles all the same.
#[test]
fn a_message_that_comes_slowly_lengthens_no_limit() {
    let server = Server::start(&[]);
    for (statements, code) in [
        (&["set idle_session_timeout = 300", "select 1"][..], "57P05"),
        (&["set idle_in_transaction_session_timeout = 300", "begin"], "25P03"),
    ] {
        let socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let mut drops = socket.try_clone().unwrap();
        let mut said = Said::on(socket);
        said.send(&startup("postgres", "postgres"));
        said.until(b'Z');
        for statement in statements {
            said.query(statement);
            said.until(b'Z');
        }
        let ended = std::thread::spawn(move || said.until_end());
        let begun = Instant::now();
        drops.write_all(b"Q\0\x0f\0\0select").unwrap();
        while !ended.is_finished() && begun.elapsed() < LIMIT {
            // The server may have closed by now.
            let _ = drops.write_all(b" ");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(ended.is_finished(), "{statements:?}");
        assert_eq!(Said::code(&ended.join().unwrap()).as_deref(), Some(code), "{statements:?}");
    }
}

/// A limit that has passed when its transaction has ended ends nobody.
#[test]
fn a_transaction_s_limit_ends_with_it() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.batch_execute("set transaction_timeout = '400ms'").unwrap();
    let begun = Instant::now();
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_millis(1500) {
        // A machine that is too slow for one statement within the limit shows nothing.
        let round = Instant::now();
        if client.batch_execute("begin; select 1; commit").is_err() {
            assert!(round.elapsed() > Duration::from_millis(300), "ended after {rounds} short transactions");
            return;
        }
        rounds += 1;
    }
}

#[test]
fn errors_of_statements_are_logged_as_the_settings_say() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.batch_execute("create table t (i int primary key); insert into t values (1)").unwrap();
    assert!(client.batch_execute("select 1;\nselect 1/0").is_err());
    wait_for_log(&server, "warn: ERROR: division by zero (sqlstate 22012, client 127.0.0.1:");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("division by zero")).unwrap();
    assert!(line.contains("user postgres, session ") && line.contains("statement \""), "{line}");
    assert!(line.contains("select 1/0"), "{line}");
    assert!(client.simple_query("selec 1").is_err());
    wait_for_log(&server, "ERROR: syntax error at or near \"selec\" at character 1");
    // The extended protocol's: what fails while it is parsed, bound and run.
    assert!(client.prepare("select nothing").is_err());
    wait_for_log(&server, "ERROR: column \"nothing\" does not exist");
    assert!(client.execute("insert into t values ($1)", &[&1]).is_err());
    wait_for_log(&server, "statement \"insert into t values ($1)\"");
    // Without the statement, and not at all.
    client.batch_execute("set log_min_error_statement = 'fatal'").unwrap();
    assert!(client.simple_query("select 'hidden'::int").is_err());
    wait_for_log(&server, "ERROR: invalid input syntax for type integer: \"hidden\"");
    assert!(!server.log().contains("select 'hidden'"), "{}", server.log());
    client.batch_execute("set log_min_messages = 'fatal'").unwrap();
    assert!(client.simple_query("select 'unsaid'::int").is_err());
    client.batch_execute("reset all").unwrap();
    assert!(client.simple_query("select 'said'::int").is_err());
    wait_for_log(&server, "type integer: \"said\"");
    assert!(!server.log().contains("unsaid"), "{}", server.log());
    for bad in ["set log_min_messages = 'loud'", "set log_min_error_statement = ''"] {
        assert!(client.batch_execute(bad).is_err(), "{bad}");
    }
    // For all sessions, one line each whatever the statement holds.
    let server = Server::start(&["--log-format", "json"]);
    assert!(server.connect().batch_execute("select 1;\n\"x\"").is_err());
    wait_for_log(&server, "\"sqlstate\":\"42601\"");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("42601")).unwrap();
    assert!(line.starts_with("{\"time\":") && line.ends_with('}'), "{line}");
    assert!(line.contains("\"level\":\"warn\""), "{line}");
    assert!(line.contains("\"statement\":\"select 1;\\u000a\\\"x\\\"\""), "{line}");
    let server = Server::start(&["--set", "log_min_messages=panic", "--log-level", "warn"]);
    assert!(server.connect().batch_execute("select 1/0").is_err());
    assert!(!server.log().contains("division"), "{}", server.log());
}

#[test]
fn an_open_transaction_keeps_no_more_log_than_it_may() {
    let server = Server::start(&["--max-retained-log", "1MiB"]);
    server.psql("create table t (id int primary key, filler text); insert into t values (0, '')");
    let mut keeper = server.connect();
    let number = pid(&mut keeper);
    keeper.batch_execute("begin; update t set filler = 'kept' where id = 0").unwrap();
    // Others write the log that it keeps; a reader keeps none.
    let mut reader = server.connect();
    reader.batch_execute("begin isolation level repeatable read; select * from t").unwrap();
    let deadline = Instant::now() + LIMIT;
    let mut round = 0;
    while !server.log().contains(&format!("session {number} is ended")) {
        assert!(Instant::now() < deadline, "{}", server.log());
        round += 1;
        server.psql(&format!(
            "insert into t select {round} * 1000 + i, repeat('f', 1000) from generate_series(1, 999) i"
        ));
        std::thread::sleep(Duration::from_millis(50));
    }
    while keeper.batch_execute("select 1").is_ok() {
        assert!(Instant::now() < deadline, "{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    wait_for_log(&server, "FATAL: terminating connection because its transaction holds back too much log");
    assert_eq!(server.psql("select filler from t where id = 0"), "");
    reader.batch_execute("commit").unwrap();
}

#[test]
fn slow_statements_are_logged() {
    let server = Server::start(&["--set", "log_min_duration_statement=0", "--log-format", "json"]);
    let mut client = server.connect();
    client.query_one("select 41 + $1::int", &[&1i32]).unwrap();
    client.batch_execute("select 'a\nb'").unwrap();
    client.batch_execute("set log_min_duration_statement = '1h'; ").unwrap();
    client.batch_execute("select 'quick'").unwrap();
    client.batch_execute("set log_min_duration_statement = -1").unwrap();
    let shown: String = client.query_one("show log_min_duration_statement", &[]).unwrap().get(0);
    assert_eq!(shown, "-1");
    client.batch_execute("select 'never'; set log_min_duration_statement = 0").unwrap();
    client.batch_execute("select 'last'").unwrap();
    wait_for_log(&server, "select 'last'");
    let session = pid(&mut client);
    let statements: HashSet<String> = server
        .log()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .filter(|object| object["session"] == session && object["statement"].is_string())
        .map(|object| {
            let message = object["message"].as_str().unwrap();
            assert!(message.starts_with("duration: ") && message.ends_with(" ms"), "{message}");
            object["statement"].as_str().unwrap().to_owned()
        })
        .collect();
    for logged in ["select 41 + $1::int", "select 'a\nb'", "select 'last'"] {
        assert!(statements.contains(logged), "{logged}: {statements:?}");
    }
    for silent in ["select 'quick'", "select 'never'"] {
        assert!(statements.iter().all(|text| !text.contains(silent)), "{silent}: {statements:?}");
    }
}

/// A cancel request, or `pg_terminate_backend`, that comes too late meets nobody.
#[test]
fn a_session_s_number_is_not_given_to_the_next_one() {
    let server = Server::start(&[]);
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let mut client = server.connect();
        assert!(seen.insert(pid(&mut client)), "a number came again");
    }
    let gone = *seen.iter().next().unwrap();
    assert_eq!(server.psql(&format!("select pg_terminate_backend({gone})")), "f");
}

/// The reader of the log may stand still: statements go on, and what was lost of the log is counted
/// when it reads again.
#[test]
fn a_log_that_nobody_reads_stops_nobody() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let port = crate::common::free_port();
    let mut command = crate::common::allcore();
    command.arg("serve").arg("--data").arg(folder.path().join("data")).args(["--buffers", "16MiB"]);
    command.args(["--listen", &format!("127.0.0.1:{port}"), "--set", "log_min_duration_statement=0"]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    while !log.next().expect("the log goes on").unwrap().contains("ready for connections") {}
    let settings = format!("host=127.0.0.1 port={port} user=postgres connect_timeout=60");
    let mut client = postgres::Client::connect(&settings, postgres::NoTls).unwrap();
    // Each line is longer than 4 KiB: the pipe and the queue of 1,024 lines are full long before
    // the last.
    let text = format!("select 1 /* {} */", "-".repeat(5000));
    for _ in 0..2000 {
        client.batch_execute(&text).unwrap();
    }
    // The first line of the log after it could be written again.
    let lost = log.map(Result::unwrap).find(|line| line.contains("lines of the log are lost"));
    let _ = child.kill();
    child.wait().unwrap();
    assert!(lost.is_some_and(|line| line.contains(" warn: ")));
}

/// Waits for a line of the log with this SQLSTATE and these words; `fields` are what else it has to
/// have.
fn wait_for_line(server: &Server, is_json: bool, code: &str, words: &str, fields: &[(&str, &str)]) {
    let is_it = |line: &&str| {
        if !is_json {
            return line.contains(words) && line.contains(&format!("sqlstate {code}"));
        }
        let object: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let message = object["message"].as_str().unwrap();
        object["sqlstate"] == code && message.contains(words)
    };
    let deadline = Instant::now() + LIMIT;
    loop {
        let log = server.log();
        // The last line may not be whole yet.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        if let Some(line) = whole.lines().find(is_it) {
            for (name, value) in fields {
                let field = if is_json { format!("\"{name}\":\"{value}") } else { format!("{name} {value}") };
                assert!(line.contains(&field), "no {field:?} in {line}");
            }
            let levels = ["warn", "error"];
            let level = |level: &&str| match is_json {
                true => line.contains(&format!("\"level\":\"{level}\"")),
                false => line.contains(&format!(" {level}: ")),
            };
            assert!(levels.iter().any(level), "{line}");
            return;
        }
        assert!(Instant::now() < deadline, "no {code} with {words:?} in:\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// In text and in JSON, and each with its client, user and database.
#[test]
fn refused_clients_ended_sessions_and_a_full_disk_are_in_the_log() {
    for is_json in [false, true] {
        let format = if is_json { "json" } else { "text" };
        let mut server = Server::start(&["--max-connections", "2", "--log-format", format]);
        server.psql("create table t (id int, filler text)");
        server.stop();
        let mut passwd = crate::common::allcore();
        passwd.args(["passwd", "postgres", "--stdin", "--data"]).arg(server.data());
        let mut passwd = passwd.stdin(std::process::Stdio::piped()).spawn().unwrap();
        passwd.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(passwd.wait().unwrap().success());
        server.environment("ALLCORE_AUTH", Some("scram"));
        // No space left on the device, once the file of pages has to grow.
        server.environment("ALLCORE_STOP", Some("storage.space.grow=fail:28"));
        server.password = Some("secret".to_owned());
        server.launch();
        let ask = |database: &str, password: &str| {
            let settings = format!(
                "host=127.0.0.1 port={} user=postgres dbname={database} password={password}",
                server.port
            );
            postgres::Client::connect(&settings, postgres::NoTls)
        };
        let from =
            |database: &'static str| [("client", "127.0.0.1:"), ("user", "postgres"), ("database", database)];
        let wait = |code: &str, words: &str, fields: &[(&str, &str)]| {
            wait_for_line(&server, is_json, code, words, fields);
        };

        assert!(ask("postgres", "wrong").is_err());
        wait("28P01", "FATAL: password authentication failed for user \"postgres\"", &from("postgres"));
        assert!(ask("absent", "secret").is_err());
        wait("3D000", "FATAL: database \"absent\" does not exist", &from("absent"));

        // Sessions that have just ended may still have their places.
        let held = || {
            let deadline = Instant::now() + LIMIT;
            loop {
                match ask("postgres", "secret") {
                    Ok(client) => return client,
                    Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        let (mut one, mut two) = (held(), held());
        assert!(ask("postgres", "secret").is_err());
        wait("53300", "FATAL: sorry, too many clients already", &[("client", "127.0.0.1:")]);

        let fill = "insert into t select i, repeat('f', 1000) from generate_series(1, 100000) i";
        let full = one.batch_execute(fill).unwrap_err();
        assert_eq!(full.code(), Some(&postgres::error::SqlState::DISK_FULL), "{full:?}");
        wait("53100", "ERROR: ", &[("client", "127.0.0.1:"), ("user", "postgres")]);

        two.batch_execute("set idle_session_timeout = 50").unwrap();
        wait("57P05", "FATAL: terminating connection due to idle-session timeout", &from("postgres"));
    }
}
