//! Widely used drivers, each through its own checks (tests/drivers), with trust over TCP and with
//! SCRAM under TLS. `scripts/drivers.sh` (part of `make test`) fetches them; a driver that is not
//! available is skipped with a message.

use crate::common::{Server, allcore, certificate, skip, succeed};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn checks() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers")
}

/// The path that `scripts/drivers.sh` has prepared; `None` if the driver was not available.
fn prepared(name: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let drivers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(target).join("drivers");
    let ready = drivers.join(format!("{name}.ready")).exists();
    if !ready {
        skip(&format!("the drivers of {name} are not here (scripts/drivers.sh fetches them)"));
    }
    ready.then_some(drivers)
}

/// Runs the checks a driver has against a server that trusts, then against one that wants SCRAM and
/// offers TLS.
fn try_driver(command: impl Fn(&Server) -> Command) {
    let server = Server::start(&[]);
    let mut plain = command(&server);
    plain.env("PGSSLMODE", "disable");
    print!("{}", succeed(&mut plain, &server.log()));
    drop(server);

    let keys = tempfile::tempdir().unwrap();
    let (crt, key) = certificate(keys.path());
    let mut server =
        Server::start(&["--tls-cert", crt.to_str().unwrap(), "--tls-key", key.to_str().unwrap()]);
    server.stop();
    let mut passwd = allcore();
    passwd.args(["passwd", "--data"]).arg(server.data()).args(["postgres", "--stdin"]).stdin(Stdio::piped());
    let mut child = passwd.spawn().unwrap();
    child.stdin.take().unwrap().write_all("sécret\n".as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    server.environment("ALLCORE_AUTH", Some("scram"));
    server.password = Some("sécret".to_owned());
    server.launch();
    let mut secured = command(&server);
    secured.env("PGSSLMODE", "require");
    print!("{}", succeed(&mut secured, &server.log()));
}

fn python(script: &str) {
    let Some(drivers) = prepared("python") else { return };
    try_driver(|server| {
        let mut command = server.client(drivers.join("python/bin/python").to_str().unwrap());
        command.arg(checks().join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    });
}

#[test]
fn psycopg_passes_its_checks() {
    python("check_psycopg.py");
}

#[test]
fn psycopg2_passes_its_checks() {
    python("check_psycopg2.py");
}

#[test]
fn asyncpg_passes_its_checks() {
    python("check_asyncpg.py");
}

#[test]
fn sqlalchemy_passes_its_checks() {
    python("check_sqlalchemy.py");
}

#[test]
fn django_passes_its_checks() {
    python("check_django.py");
}

#[test]
fn node_pg_passes_its_checks() {
    let Some(drivers) = prepared("node") else { return };
    try_driver(|server| {
        let mut command = server.client("node");
        command.arg(checks().join("node/check.js")).env("NODE_PATH", drivers.join("node/node_modules"));
        command
    });
}

#[test]
fn pgx_and_pq_pass_their_checks() {
    let Some(drivers) = prepared("go") else { return };
    try_driver(|server| server.client(drivers.join("go").to_str().unwrap()));
}

#[test]
fn jdbc_passes_its_checks() {
    let Some(drivers) = prepared("java") else { return };
    let classes = drivers.join("java");
    try_driver(|server| {
        let mut command = server.client("java");
        command
            .arg("-cp")
            .arg(format!("{}/postgresql.jar:{}", classes.display(), classes.display()))
            .arg("Check");
        command
    });
}
