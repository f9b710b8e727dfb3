//! SIGHUP: settings, passwords and certificates are read again; what cannot be used changes
//! nothing.

use crate::common::{Server, allcore, certificate, text};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, Config, NoTls};

const READ: &str = "read again on SIGHUP";
const REFUSED: &str = "nothing was changed on SIGHUP";

/// Sends SIGHUP and waits until the log has these words once more.
fn reload(server: &Server, words: &str) {
    let count = || server.log().matches(words).count();
    let before = count();
    let told = Command::new("kill").args(["-HUP", &server.pid().to_string()]).status().unwrap();
    assert!(told.success());
    let deadline = Instant::now() + Duration::from_secs(60);
    while count() == before {
        assert!(Instant::now() < deadline, "no further word of {words:?} in:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn set_password(server: &Server, user: &str, password: &str) {
    let mut command = allcore();
    command.arg("passwd").arg("--data").arg(server.data()).args([user, "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn log_in(server: &Server, environment: &[(&str, &str)]) -> String {
    let mut command = server.client("psql");
    command.args(["-X", "-A", "-t", "-w", "-c", "show statement_timeout"]);
    command.envs(environment.iter().copied());
    text(&command.output().unwrap()).trim().to_owned()
}

#[test]
fn a_reload_takes_the_new_settings_or_keeps_the_old() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("allcore.toml");
    let write = |text: &str| fs::write(&config, text).unwrap();
    write("[set]\nstatement_timeout = \"30s\"\n");
    let server = Server::start(&["--config", config.to_str().unwrap(), "--set", "work_mem=1MB"]);
    assert_eq!(log_in(&server, &[]), "30s");
    let mut inside = server.connect();
    assert_eq!(server.psql("show work_mem"), "1MB");
    // Those who are in hear of it, too.
    write("cores = 1\n[set]\nstatement_timeout = \"40s\"\n");
    reload(&server, READ);
    assert!(server.log().contains("setting \"cores\" cannot be changed without restarting the server"));
    assert_eq!(log_in(&server, &[]), "40s");
    let kept: String = inside.query_one("show statement_timeout", &[]).unwrap().get(0);
    assert_eq!(kept, "40s");
    for bad in
        ["[set]\nstatement_timeout = \"soon\"\n", "[set]\nno_such = 1\n", "coers = 1\n", "auth = \"scram\"\n"]
    {
        write(bad);
        reload(&server, REFUSED);
        assert_eq!(log_in(&server, &[]), "40s", "after {bad}");
    }
    fs::remove_file(&config).unwrap();
    reload(&server, REFUSED);
    assert_eq!(log_in(&server, &[]), "40s");
    // From trust to passwords, without a restart.
    set_password(&server, "postgres", "secret");
    write("auth = \"scram\"\n");
    reload(&server, READ);
    assert!(log_in(&server, &[]).contains("no password supplied"));
    assert_eq!(log_in(&server, &[("PGPASSWORD", "secret")]), "0");
    assert_eq!(inside.query_one("select 1", &[]).unwrap().get::<_, i32>(0), 1);
}

/// The log says what a reload changes. A setting that lets clients in with less proof must be given
/// by name.
#[test]
fn a_reload_says_what_it_changes_and_an_emptied_file_opens_nothing() {
    let mut server = Server::start(&[]);
    server.stop();
    set_password(&server, "postgres", "secret");
    let config = server.folder.path().join("allcore.toml");
    let write = |text: &str| fs::write(&config, text).unwrap();
    write("auth = \"scram\"\nauthentication_timeout = \"30s\"\n[set]\nwork_mem = \"1MB\"\n");
    server.arguments(&["--config", config.to_str().unwrap()]);
    server.password = Some("secret".to_owned());
    server.launch();
    let without_password = || log_in(&server, &[("PGPASSWORD", "")]);
    write("");
    reload(&server, REFUSED);
    let log = server.log();
    assert!(
        log.contains("\"auth\" is no longer set, so that clients would log in without a password"),
        "{log}"
    );
    assert!(without_password().contains("no password supplied"), "{}", without_password());
    write("auth = \"trust\"\n[set]\nwork_mem = \"2MB\"\n");
    reload(&server, READ);
    assert_eq!(without_password(), "0");
    for line in [
        "warn: setting \"auth\" changed from scram to trust",
        "info: setting \"authentication-timeout\" changed from 30s to 1min",
        "info: setting \"set.work_mem\" changed from 1MB to 2MB",
    ] {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !server.log().contains(line) {
            assert!(Instant::now() < deadline, "no word of {line:?} in:\n{}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A reload refuses files that others may read, as a start does.
#[test]
fn files_open_to_others_are_refused() {
    let mut server = Server::start(&[]);
    server.stop();
    set_password(&server, "postgres", "first");
    server.environment("ALLCORE_AUTH", Some("scram"));
    server.password = Some("first".to_owned());
    server.launch();
    let passwords = server.data().join("passwords");
    let open = || fs::set_permissions(&passwords, Permissions::from_mode(0o644)).unwrap();
    set_password(&server, "postgres", "second");
    open();
    reload(&server, REFUSED);
    let log = server.log();
    assert!(log.contains("passwords is open to others than its owner (permissions 0644)"), "{log}");
    // Nor does a login take it.
    assert_eq!(log_in(&server, &[("PGPASSWORD", "first")]), "0");
    assert!(log_in(&server, &[("PGPASSWORD", "second")]).contains("password authentication failed"));
    fs::set_permissions(&passwords, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(log_in(&server, &[("PGPASSWORD", "second")]), "0");
    reload(&server, READ);
    fs::set_permissions(server.data().join("pages"), Permissions::from_mode(0o640)).unwrap();
    reload(&server, REFUSED);
}

/// The value of a setting in a session.
fn show(client: &mut Client, name: &str) -> String {
    client.query_one(&format!("show {name}"), &[]).unwrap().get(0)
}

#[test]
fn a_session_follows_a_reload_but_for_what_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("allcore.toml");
    let write = |text: &str| fs::write(&config, text).unwrap();
    let settings = |time: &str, zone: &str, path: &str| {
        format!(
            "authentication_timeout = \"{time}\"\n[set]\nstatement_timeout = \"{time}\"\n\
             lock_timeout = \"{time}\"\nidle_session_timeout = \"{time}\"\nTimeZone = \"{zone}\"\n\
             search_path = \"{path}\"\n"
        )
    };
    write(&settings("30s", "UTC", "public"));
    let server = Server::start(&["--config", config.to_str().unwrap()]);
    server.psql(
        "create schema other; create table public.t as select 'public' as v;
         create table other.t as select 'other' as v",
    );
    let mut one = server.connect();
    let mut asking = Config::new();
    asking.host("127.0.0.1").port(server.port).user("postgres").dbname("postgres");
    let mut asking = asking.options("-c statement_timeout=11s").connect(NoTls).unwrap();
    let mut inside = server.connect();
    one.batch_execute(
        "set lock_timeout = '12s'; set idle_session_timeout = '13s'; reset idle_session_timeout",
    )
    .unwrap();
    inside.batch_execute("begin; set local lock_timeout = '14s'; set statement_timeout = '15s'").unwrap();
    let prepared = one.prepare("select v, '2020-01-01 00:00:00+00'::timestamptz::text from t").unwrap();
    let shown = |client: &mut Client| {
        let row = client.query_one(&prepared, &[]).unwrap();
        (row.get::<_, String>(0), row.get::<_, String>(1))
    };
    assert_eq!(shown(&mut one), ("public".to_owned(), "2020-01-01 00:00:00+00".to_owned()));
    write(&settings("40s", "Asia/Tokyo", "other"));
    reload(&server, READ);
    for (name, value) in [
        ("statement_timeout", "40s"),
        ("lock_timeout", "12s"),
        ("idle_session_timeout", "40s"),
        ("TimeZone", "Asia/Tokyo"),
        ("search_path", "other"),
        ("authentication_timeout", "40s"),
    ] {
        assert_eq!(show(&mut one, name), value, "{name}");
    }
    assert_eq!(shown(&mut one).1, "2020-01-01 09:00:00+09");
    assert_eq!(one.query_one("select v from t", &[]).unwrap().get::<_, &str>(0), "other");
    // RESET goes back to what there is now.
    one.batch_execute("reset lock_timeout").unwrap();
    assert_eq!(show(&mut one, "lock_timeout"), "40s");
    // Settings that the client asked for stay its own, too.
    assert_eq!(show(&mut asking, "statement_timeout"), "11s");
    assert_eq!(show(&mut asking, "lock_timeout"), "40s");
    asking.batch_execute("set statement_timeout = '16s'; reset statement_timeout").unwrap();
    assert_eq!(show(&mut asking, "statement_timeout"), "11s");
    // The end of a transaction brings back what there is now, not what there was.
    assert_eq!(show(&mut inside, "lock_timeout"), "14s");
    assert_eq!(show(&mut inside, "statement_timeout"), "15s");
    inside.batch_execute("rollback").unwrap();
    assert_eq!(show(&mut inside, "lock_timeout"), "40s");
    assert_eq!(show(&mut inside, "statement_timeout"), "40s");
    // A setting that is gone from the file has its default again.
    write("");
    reload(&server, READ);
    for (name, value) in [
        ("statement_timeout", "0"),
        ("TimeZone", "UTC"),
        ("search_path", "\"$user\", public"),
        ("authentication_timeout", "1min"),
    ] {
        assert_eq!(show(&mut one, name), value, "{name}");
    }
}

#[test]
fn passwords_change_without_a_restart_and_a_damaged_file_shuts_nobody_out() {
    let mut server = Server::start(&[]);
    server.stop();
    set_password(&server, "postgres", "first");
    server.environment("ALLCORE_AUTH", Some("scram"));
    server.password = Some("first".to_owned());
    server.launch();
    set_password(&server, "postgres", "second");
    assert!(log_in(&server, &[]).contains("password authentication failed"));
    assert_eq!(log_in(&server, &[("PGPASSWORD", "second")]), "0");
    for damaged in ["postgres nonsense\n", ""] {
        fs::write(server.data().join("passwords"), damaged).unwrap();
        assert_eq!(log_in(&server, &[("PGPASSWORD", "second")]), "0", "{damaged:?}");
        reload(&server, REFUSED);
        assert_eq!(log_in(&server, &[("PGPASSWORD", "second")]), "0", "{damaged:?}");
    }
    assert!(server.log().contains("the passwords stay as they were"), "{}", server.log());
}

#[test]
fn certificates_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate_file, key) = certificate(folder.path());
    let server = Server::start(&[
        "--tls-cert",
        certificate_file.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ]);
    // The client accepts the file's certificate and no other.
    let verify = |root: &std::path::Path| {
        let root = root.to_str().unwrap();
        log_in(&server, &[("PGSSLMODE", "verify-ca"), ("PGSSLROOTCERT", root)])
    };
    let old = folder.path().join("old.crt");
    fs::copy(&certificate_file, &old).unwrap();
    assert_eq!(verify(&old), "0");
    certificate(folder.path());
    reload(&server, READ);
    assert_eq!(verify(&certificate_file), "0");
    assert!(verify(&old).contains("certificate verify failed"), "{}", verify(&old));
    // The server's side of it.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !server.log().contains("could not accept a TLS connection: ") {
        assert!(Instant::now() < deadline, "no word of the failed handshake in:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::write(&key, "no key").unwrap();
    reload(&server, REFUSED);
    assert_eq!(verify(&certificate_file), "0");
    // To open one would wait for its other end.
    fs::remove_file(&key).unwrap();
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&key).status().unwrap().success());
    reload(&server, REFUSED);
    assert!(server.log().contains("server.key is a FIFO, not a regular file"), "{}", server.log());
    assert_eq!(verify(&certificate_file), "0");
}
