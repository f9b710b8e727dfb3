//! SIGHUP: settings, passwords and certificates are read again; what cannot be used changes nothing.
#![allow(missing_docs)]

mod common;

use common::{Server, allcore, certificate, text};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

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
    // Who is in keeps what it began with.
    write("cores = 1\n[set]\nstatement_timeout = \"40s\"\n");
    reload(&server, READ);
    assert!(server.log().contains("setting \"cores\" cannot be changed without restarting the server"));
    assert_eq!(log_in(&server, &[]), "40s");
    let kept: String = inside.query_one("show statement_timeout", &[]).unwrap().get(0);
    assert_eq!(kept, "30s");
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
    fs::write(server.data().join("passwords"), "postgres nonsense\n").unwrap();
    assert_eq!(log_in(&server, &[("PGPASSWORD", "second")]), "0");
    reload(&server, REFUSED);
    assert_eq!(log_in(&server, &[("PGPASSWORD", "second")]), "0");
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
    // What is accepted is the certificate of the file and no other.
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
    fs::write(&key, "no key").unwrap();
    reload(&server, REFUSED);
    assert_eq!(verify(&certificate_file), "0");
}
