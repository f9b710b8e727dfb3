//! Admission: trust ends at loopback, the server's files belong to their owner, and clients that
//! have not logged in are bounded.

use crate::common::raw::{Said, startup};
use crate::common::{Server, allcore, certificate, free_port, succeed, text};
use std::fs::{self, Permissions};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs `allcore serve` with arguments that it must refuse. Returns its message.
fn refusal(data: &Path, arguments: &[&str]) -> String {
    let mut command = allcore();
    command.arg("serve").arg("--data").arg(data).args(["--buffers", "16MiB"]).args(arguments);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{command:?} was to refuse to start, but runs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{command:?}: {}", text(&output));
    text(&output).lines().find(|line| line.starts_with("allcore: ")).unwrap_or_default().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_password(data: &Path, user: &str, password: &str) {
    let mut command = allcore();
    command.arg("passwd").arg("--data").arg(data).args([user, "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// A server that asks for passwords; `postgres` has the password `secret`.
pub fn guarded(extra: &[&str]) -> Server {
    let mut server = Server::start(extra);
    server.stop();
    set_password(&server.data(), "postgres", "secret");
    server.environment("ALLCORE_AUTH", Some("scram"));
    server.password = Some("secret".to_owned());
    server.launch();
    server
}

/// psql's answer to `select current_user`, with further variables of its environment.
fn log_in(server: &Server, environment: &[(&str, &str)]) -> String {
    let mut command = server.client("psql");
    command.args(["-X", "-A", "-t", "-w", "-c", "select current_user"]);
    command.envs(environment.iter().copied());
    text(&command.output().unwrap()).trim().to_owned()
}

fn wait_for_log(server: &Server, words: &str) {
    let deadline = Instant::now() + LIMIT;
    while !server.log().contains(words) {
        assert!(Instant::now() < deadline, "no word of {words:?} in:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn clients_of_other_machines_are_believed_only_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for arguments in [
        &["--listen", "0.0.0.0:0"][..],
        &["--listen", "0.0.0.0:0", "--auth", "trust"],
        &["--listen", "0.0.0.0:0", "--i-know"],
        &["--listen", "[::]:0"],
        &["--listen", "127.0.0.1:0,0.0.0.0:0"],
    ] {
        let said = refusal(&data, arguments);
        assert!(said.contains("--auth scram") && said.contains("'--auth trust --i-know'"), "{said}");
    }
    assert!(!data.exists(), "a refused start leaves nothing behind");
    let other = format!("0.0.0.0:{}", free_port());
    let server = Server::start(&["--listen", &other, "--auth", "trust", "--i-know"]);
    assert_eq!(server.psql("select 1"), "1");
}

#[test]
fn a_data_folder_is_its_owner_s_alone() {
    let mut server = Server::start(&[]);
    server.psql("create table kept (id int primary key)");
    server.stop();
    let data = server.data();
    let mut waiting = vec![data.clone()];
    while let Some(folder) = waiting.pop() {
        assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false => assert_eq!(mode(&path), 0o600, "{}", path.display()),
            }
        }
    }
    for (path, wide, private) in
        [(data.clone(), 0o755, 0o700), (data.join("pages"), 0o640, 0o600), (data.join("log"), 0o701, 0o700)]
    {
        fs::set_permissions(&path, Permissions::from_mode(wide)).unwrap();
        let said = refusal(&data, &[]);
        let mend = format!("run 'chmod -R go= {}'", data.display());
        assert!(said.contains(&format!("{} is open", path.display())) && said.contains(&mend), "{said}");
        assert!(said.contains(&format!("{wide:04o}")), "{said}");
        succeed(Command::new("chmod").args(["-R", "go="]).arg(&data), "");
        assert_eq!(mode(&path), private);
    }
    server.launch();
    // An empty folder made by hand is closed to others.
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("data");
    fs::create_dir(&made).unwrap();
    fs::set_permissions(&made, Permissions::from_mode(0o755)).unwrap();
    refusal(&made, &["--auth", "scram"]);
    assert_eq!(mode(&made), 0o700);
}

#[test]
fn a_tls_key_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let tls = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let said = refusal(&folder.path().join("data"), &tls);
    assert!(said.contains(&format!("run 'chmod 600 {}'", key.display())), "{said}");
    let said = refusal(&folder.path().join("data"), &["--tls", "required"]);
    assert!(said.contains("--tls-cert and --tls-key"), "{said}");
}

#[test]
fn with_tls_required_nobody_is_asked_for_a_password_in_the_clear() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let mut server = Server::start(&[]);
    server.stop();
    set_password(&server.data(), "postgres", "secret");
    for (name, value) in [
        ("ALLCORE_AUTH", "scram"),
        ("ALLCORE_TLS", "required"),
        ("ALLCORE_TLS_CERT", certificate.to_str().unwrap()),
        ("ALLCORE_TLS_KEY", key.to_str().unwrap()),
    ] {
        server.environment(name, Some(value));
    }
    server.password = Some("secret".to_owned());
    server.launch();
    assert_eq!(log_in(&server, &[("PGSSLMODE", "require")]), "postgres");
    let said = log_in(&server, &[("PGSSLMODE", "disable")]);
    assert!(said.contains("no unencrypted connections"), "{said}");
    let local = server.folder.path().to_str().unwrap().to_owned();
    assert_eq!(log_in(&server, &[("PGHOST", &local), ("PGSSLMODE", "disable")]), "postgres");

    let mut said = Said::connect(server.port);
    said.send(&startup("postgres", "postgres"));
    let messages = said.until_end();
    assert!(messages.iter().all(|(kind, _)| *kind != b'R'), "asked for a password: {messages:?}");
    assert_eq!(Said::code(&messages), Some("28000".to_owned()), "{messages:?}");
}

#[test]
fn a_proof_is_bound_to_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let server = guarded(&["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    for (binding, tls) in
        [("require", "require"), ("prefer", "require"), ("disable", "require"), ("prefer", "disable")]
    {
        let said = log_in(&server, &[("PGCHANNELBINDING", binding), ("PGSSLMODE", tls)]);
        assert_eq!(said, "postgres", "channel_binding={binding} sslmode={tls}");
    }
    let said = log_in(&server, &[("PGCHANNELBINDING", "require"), ("PGSSLMODE", "disable")]);
    assert!(said.contains("channel binding"), "{said}");
    let said = log_in(&server, &[("PGCHANNELBINDING", "require"), ("PGPASSWORD", "other")]);
    assert!(said.contains("password authentication failed"), "{said}");
}

/// The server's answer to `openssl s_client` when it begins with TLS, asks for `select 40 + 2` and
/// leaves.
fn ask_by_tls_at_once(server: &Server, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{}", server.port)]).args(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = startup("postgres", "postgres");
    said.extend(b"Q\0\0\0\x12select 40 + 2\0X\0\0\0\x04");
    // A client that was refused may have gone.
    let _ = child.stdin.as_mut().unwrap().write_all(&said);
    let output = child.wait_with_output().unwrap();
    output.stdout
}

#[test]
fn a_client_may_begin_with_tls_if_it_names_the_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let server =
        Server::start(&["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    let has = |said: &[u8], words: &str| said.windows(words.len()).any(|window| window == words.as_bytes());
    let said = ask_by_tls_at_once(&server, &["-alpn", "postgresql"]);
    let value = "\0\0\0\x0242";
    assert!(has(&said, value), "{said:?}");
    let said = ask_by_tls_at_once(&server, &[]);
    assert!(has(&said, "08P01") && has(&said, "without ALPN") && !has(&said, value), "{said:?}");
    assert_eq!(ask_by_tls_at_once(&server, &["-alpn", "http/1.1"]), b"");
    // A client that asks for TLS in PostgreSQL's way need not name the protocol.
    assert_eq!(log_in(&server, &[("PGSSLMODE", "require")]), "postgres");
    let without = Server::start(&[]);
    let mut said = Said::connect(without.port);
    said.send(b"\x16\x03\x01\0\x05hello");
    assert_eq!(Said::code(&said.until_end()), Some("08P01".to_owned()));
}

#[test]
fn clients_that_use_tls_hear_that_the_server_is_starting() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let mut server =
        Server::start(&["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    server.psql("create table t (id int)");
    server.crash();
    server.environment("ALLCORE_STOP", Some("recovery.redo=park@1"));
    server.launch_unready();
    let deadline = Instant::now() + LIMIT;
    let starting = "FATAL:  the database system is starting up";
    while !log_in(&server, &[("PGSSLMODE", "disable")]).contains(starting) {
        assert!(Instant::now() < deadline, "nobody answers:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    let said = log_in(&server, &[("PGSSLMODE", "require")]);
    assert!(said.contains(starting), "{said}");
    let has = |said: &[u8], words: &str| said.windows(words.len()).any(|window| window == words.as_bytes());
    let said = ask_by_tls_at_once(&server, &["-alpn", "postgresql"]);
    assert!(has(&said, "57P03") && has(&said, "is starting up"), "{said:?}");
    let said = ask_by_tls_at_once(&server, &[]);
    assert!(has(&said, "08P01") && has(&said, "without ALPN"), "{said:?}");
    wait_for_log(&server, "FATAL: received direct SSL connection request without ALPN");
    let mut nonsense = Said::connect(server.port);
    nonsense.send(b"\x16\x03\x01\0\x05hello");
    wait_for_log(&server, "could not accept a TLS connection");
    server.crash();
    // Without a certificate such a client is dropped, with a word in the log.
    server.arguments(&[]);
    server.launch_unready();
    while !log_in(&server, &[]).contains(starting) {
        assert!(Instant::now() < deadline, "nobody answers:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut said = Said::connect(server.port);
    said.send(b"\x16\x03\x01\0\x05hello");
    assert!(said.until_end().is_empty());
    wait_for_log(&server, "FATAL: received direct SSL connection request without SSL support");
    server.crash();
    server.environment("ALLCORE_STOP", None);
    server.launch();
    assert_eq!(server.psql("select count(*) from t"), "0");
}

/// From protocol 3.2 on a session's secret has 32 bytes, of which each counts.
#[test]
fn a_cancel_request_has_to_show_the_whole_secret() {
    let server = Server::start(&[]);
    for (minor, length) in [(0, 4), (2, 32)] {
        let mut said = Said::connect(server.port);
        let mut packet = startup("postgres", "postgres");
        packet[7] = minor;
        said.send(&packet);
        let key = said.until(b'K');
        assert_eq!(key.len(), 4 + length);
        said.until(b'Z');
        said.query("select pg_sleep(1000)");
        let pid = i32::from_be_bytes(key[..4].try_into().unwrap());
        server.wait_active(pid);
        let cancel = |key: &[u8]| {
            let mut request = (8 + key.len() as u32).to_be_bytes().to_vec();
            request.extend(80_877_102u32.to_be_bytes());
            request.extend(key);
            let mut other = Said::connect(server.port);
            other.send(&request);
            // The request is obeyed before the server closes.
            assert!(other.next().is_none_or(|(kind, _)| kind == b'E'));
        };
        let mut wrong = key.clone();
        wrong[3 + length] ^= 1;
        for other in [&wrong[..], &key[..4], &key[..3 + length], &[&key[..], b"x"].concat()] {
            cancel(other);
        }
        server.wait_active(pid);
        cancel(&key);
        let error = (b'E', said.until(b'E'));
        assert_eq!(Said::code(&[error]), Some("57014".to_owned()));
    }
}

#[test]
fn connections_beyond_the_limits_are_told_so() {
    let server = Server::start(&["--max-connections", "3", "--superuser-reserved-connections", "1"]);
    let as_user = |user: &str| {
        let settings =
            format!("host=127.0.0.1 port={} user={user} dbname=postgres connect_timeout=60", server.port);
        postgres::Client::connect(&settings, postgres::NoTls)
    };
    let held = |user: &str| {
        // A session that has just ended may still be counted.
        let deadline = Instant::now() + LIMIT;
        loop {
            match as_user(user) {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let refused = |user: &str| {
        let error = as_user(user).map(|_| ()).unwrap_err();
        let error = error.as_db_error().unwrap_or_else(|| panic!("{error:?}"));
        (error.code().code().to_owned(), error.severity().to_owned(), error.message().to_owned())
    };
    let _ordinary = [held("ada"), held("ada")];
    let full = |message: &str| ("53300".to_owned(), "FATAL".to_owned(), message.to_owned());
    let message = "remaining connection slots are reserved for the role \"postgres\"";
    assert_eq!(refused("ada"), full(message));
    let _reserved = held("postgres");
    assert_eq!(refused("postgres"), full("sorry, too many clients already"));
    assert_eq!(refused("ada"), full("sorry, too many clients already"));
    wait_for_log(&server, "FATAL: sorry, too many clients already");
}

#[test]
fn connections_that_do_not_log_in_have_a_limit_of_their_own() {
    let server = Server::start(&["--max-logins", "2"]);
    let silent: Vec<TcpStream> =
        (0..2).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    // They are accepted in their order.
    let mut one_more = Said::connect(server.port);
    one_more.send(&startup("postgres", "postgres"));
    let messages = one_more.until_end();
    assert_eq!(Said::code(&messages), Some("53300".to_owned()), "{messages:?}");
    // The machine's administrator gets in nevertheless.
    let mut command = server.socket_client("psql");
    let said = succeed(command.args(["-X", "-A", "-t", "-c", "select 'in'"]), &server.log());
    assert_eq!(said.trim(), "in");
    drop(silent);
    let deadline = Instant::now() + LIMIT;
    while server.try_connect().is_err() {
        assert!(Instant::now() < deadline, "places are not given back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// However many connections stay silent, a client that asks gets the reason of its refusal.
#[test]
fn silent_connections_keep_no_answer_from_those_who_ask() {
    let server = Server::start(&["--max-connections", "4", "--max-logins", "2"]);
    let silent: Vec<TcpStream> =
        (0..120).map(|_| TcpStream::connect(("127.0.0.1", server.port)).unwrap()).collect();
    let mut one_more = Said::connect(server.port);
    one_more.send(&startup("postgres", "postgres"));
    let messages = one_more.until_end();
    assert_eq!(Said::code(&messages), Some("53300".to_owned()), "{messages:?}");
    for tls in ["disable", "prefer"] {
        let said = log_in(&server, &[("PGSSLMODE", tls)]);
        assert!(said.contains("FATAL:  sorry, too many clients already"), "{said}");
    }
    // So are the silent ones that made room for others, but for the first, which may still log in.
    let mut told = Said::on(silent.into_iter().nth(2).unwrap());
    let messages = told.until_end();
    assert_eq!(Said::code(&messages), Some("53300".to_owned()), "{messages:?}");
    let deadline = Instant::now() + LIMIT;
    while server.try_connect().is_err() {
        assert!(Instant::now() < deadline, "places are not given back");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn failed_logins_are_logged_and_slowed_down_but_not_the_administrator_s() {
    let server = guarded(&[]);
    for round in 0..8 {
        let said = log_in(
            &server,
            &[("PGPASSWORD", "wrong"), ("PGUSER", if round % 2 == 0 { "postgres" } else { "nobody" })],
        );
        assert!(said.contains("password authentication failed for user"), "{said}");
    }
    wait_for_log(&server, "FATAL: password authentication failed for user \"nobody\"");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("for user \"nobody\"")).unwrap();
    for field in [" warn: ", "sqlstate 28P01", "client 127.0.0.1:", "user nobody", "database postgres"] {
        assert!(line.contains(field), "no {field:?} in {line}");
    }
    // Neither the right password nor another way in is shut.
    assert_eq!(log_in(&server, &[]), "postgres");
    let local = server.folder.path().to_str().unwrap().to_owned();
    assert_eq!(log_in(&server, &[("PGHOST", &local)]), "postgres");
}

#[test]
fn a_flood_of_refused_clients_does_not_flood_the_log() {
    const CLIENTS: usize = 300;
    let server = Server::start(&[]);
    for _ in 0..CLIENTS {
        let mut said = Said::connect(server.port);
        said.send(&startup("postgres", "nowhere"));
        assert_eq!(Said::code(&said.until_end()), Some("3D000".to_owned()));
    }
    // One line each, or counted in another.
    let deadline = Instant::now() + LIMIT;
    loop {
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains("FATAL: database \"nowhere\" does not")).count();
        let omitted = log.lines().filter(|line| line.contains("from 127.0.0.1") && line.contains("3D000"));
        let omitted: usize = omitted
            .filter_map(|line| {
                let (before, _) = line.split_once(" further refusals in a second: ")?;
                before.rsplit(' ').next()?.parse::<usize>().ok()
            })
            .sum();
        assert!(lines + omitted <= CLIENTS, "{log}");
        if lines + omitted == CLIENTS {
            // Two lines a second.
            assert!(lines < CLIENTS / 2, "{log}");
            break;
        }
        assert!(Instant::now() < deadline, "{lines} lines and {omitted} others:\n{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A line in the log is one line, whatever a client calls itself.
#[test]
fn a_client_cannot_forge_a_line_of_the_log() {
    let server = Server::start(&["--log-format", "json"]);
    let mut said = Said::connect(server.port);
    said.send(&startup("post\"gres\n\u{1b}[2J", "no such\nwarn: forged"));
    let messages = said.until_end();
    assert_eq!(Said::code(&messages), Some("3D000".to_owned()), "{messages:?}");
    wait_for_log(&server, "3D000");
    let log = server.log();
    for line in log.lines() {
        let object: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(object["time"].is_string() && object["level"].is_string(), "{line}");
        if object["sqlstate"] == "3D000" {
            assert_eq!(object["database"], "no such\nwarn: forged");
            assert_eq!(object["user"], "post\"gres\n\u{1b}[2J");
        }
    }
}

#[test]
fn unknown_users_are_shown_the_same_salt_after_a_restart() {
    let mut server = guarded(&[]);
    let salt = |server: &Server| {
        let mut said = Said::connect(server.port);
        said.send(&startup("nobody", "postgres"));
        said.until(b'R');
        let first = b"n,,n=,r=abcdef";
        let mut body = b"SCRAM-SHA-256\0".to_vec();
        body.extend((first.len() as u32).to_be_bytes());
        body.extend(first);
        said.message(b'p', &body);
        let answer = said.until(b'R');
        let text = String::from_utf8(answer[4..].to_vec()).unwrap();
        let (_, rest) = text.split_once(",s=").unwrap();
        rest.to_owned()
    };
    let before = salt(&server);
    assert!(before.ends_with(",i=4096"), "{before}");
    assert_eq!(salt(&server), before);
    server.stop();
    server.launch();
    assert_eq!(salt(&server), before);
    assert_eq!(mode(&server.data().join("login-secret")), 0o600);
}
