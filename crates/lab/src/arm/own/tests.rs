//! Servers start, answer with their settings, and leave nothing behind. A test is skipped where its
//! server is not installed.

use std::path::Path;

use sync::atomic::AtomicBool;

use crate::arm::control::Control;
use crate::arm::spec::Spec;
use crate::arm::{Address, Running};

fn start(text: &str) -> Result<Running, String> {
    let executable = Path::new("/nowhere/executable");
    Running::start(&Spec::parse(text).unwrap(), executable, &AtomicBool::new(false))
}

/// Starts a server; returns nothing, and prints a message, where it is not installed.
fn start_if_installed(text: &str) -> Option<Result<Running, String>> {
    let started = start(text);
    match &started {
        Err(error) if crate::tests::is_absent(error) => None,
        _ => Some(started),
    }
}

fn starts_and_leaves_nothing(text: &str, setting: (&str, &str), version: &str) {
    let Some(started) = start_if_installed(text) else { return };
    let arm = started.unwrap();
    let told: Vec<_> = arm.about.settings.iter().filter(|(name, _)| name == setting.0).collect();
    assert_eq!(told, [&(setting.0.to_owned(), setting.1.to_owned())], "{:?}", arm.about);
    assert!(arm.about.server.contains(version), "{:?}", arm.about);
    let Address::Unix(socket) = arm.target.address.clone() else { panic!("{:?}", arm.target) };
    let [process] = arm.target.processes[..] else { panic!("{:?}", arm.target) };
    assert_eq!(crate::arm::local::process(&arm.target.address), Ok(Some(process)));
    assert_eq!(arm.watched().1(), None);
    drop(arm);
    assert!(!socket.parent().unwrap().exists());
    assert!(!Path::new(&format!("/proc/{process}")).exists());
}

/// PostgreSQL counts its buffers in pages where the setting names no unit, and takes the last of
/// two values. The report has the value that the server uses.
#[test]
fn postgres_is_started_and_stopped() {
    let arm = "pg=serve-postgres:shared_buffers=1GB shared_buffers=4096";
    starts_and_leaves_nothing(arm, ("shared_buffers", "32MB"), "PostgreSQL");
}

/// 1,000 clients prepare up to 37 statements each; the server's default limit is 16,382.
#[test]
fn mariadb_has_room_for_the_statements_of_as_many_clients_as_it_admits() {
    let Some(started) = start_if_installed("m=serve-mariadb:innodb_buffer_pool_size=16M") else { return };
    let arm = started.unwrap();
    let mut control = Control::connect(&arm.target).unwrap();
    let mut number = |name: &str| {
        let value = control.value(&format!("SELECT @@{name}")).unwrap().unwrap();
        value.parse::<u64>().unwrap()
    };
    assert!(number("max_prepared_stmt_count") >= 37 * number("max_connections"));
}

#[test]
fn mariadb_is_started_and_stopped() {
    let setting = ("innodb_buffer_pool_size", "16M");
    starts_and_leaves_nothing("m=serve-mariadb:innodb-buffer-pool-size=16M", setting, "MariaDB");
}

#[test]
fn a_server_that_does_not_start_says_why() {
    if let Some(started) = start_if_installed("pg=serve-postgres:shared_bufers=32MB") {
        let error = started.unwrap_err();
        assert!(error.starts_with("arm pg: ") && error.contains("\"shared_bufers\""), "{error}");
    }
    if let Some(started) = start_if_installed("m=serve-mariadb:innodb_bufer_pool=1") {
        let error = started.unwrap_err();
        assert!(error.starts_with("arm m: ") && error.contains("innodb_bufer_pool"), "{error}");
    }
    let error = start("pg=serve-postgres:bin=/nowhere").unwrap_err();
    assert_eq!(error, "arm pg: there is no postgres in /nowhere");
    let error = start("a=serve:bin=/nowhere").unwrap_err();
    assert_eq!(error, "arm a: there is no executable in /nowhere");
    let error = start("a=serve:--cores 2").unwrap_err();
    assert!(error.starts_with("arm a: can't start /nowhere/executable: "), "{error}");
    let error = start("u=postgres://u@/x?host=/nowhere").unwrap_err();
    let expected = "arm u: can't reach the server at /nowhere/.s.PGSQL.5432: ";
    assert!(error.starts_with(expected), "{error}");
}
