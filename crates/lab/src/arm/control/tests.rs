//! Tests against running servers. A test is skipped, with a message, where its server is missing.

use super::*;
use crate::client::Params;
use crate::tests::target;

/// Both dialects do the same with the same calls.
fn does_all(dialect: Dialect) {
    let Some(target) = target(dialect) else { return };
    let mut control = Control::connect(&target).unwrap();
    control.execute("DROP TABLE IF EXISTS lab_control").unwrap();
    control.execute("CREATE TABLE lab_control (a int PRIMARY KEY, b varchar(20))").unwrap();
    let texts = [Some("plain"), Some("tab\tquote'\\ line\n"), Some(""), None];
    let mut at = 0;
    let progress = Progress::new(4);
    let loaded = control.load("lab_control", &progress, |row: &mut Params| {
        let Some(text) = texts.get(at) else { return false };
        row.int(-(at as i64));
        match text {
            Some(text) => row.text(text),
            None => row.null(),
        }
        at += 1;
        true
    });
    assert_eq!((loaded.unwrap(), progress.rows()), (4, 4));
    let rows = control.query("SELECT a, b FROM lab_control ORDER BY a DESC").unwrap();
    let expected: Vec<Row> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| vec![Some((-(at as i64)).to_string()), text.map(str::to_owned)])
        .collect();
    assert_eq!(rows, expected);
    assert_eq!(control.execute("UPDATE lab_control SET b = 'x' WHERE a > -2").unwrap(), 2);
    assert_eq!(
        control.value("SELECT count(*) FROM lab_control WHERE b = 'x'").unwrap().as_deref(),
        Some("2")
    );
    let fault = control.query("SELECT * FROM lab_nowhere").unwrap_err();
    assert!(fault.is_unknown_table(), "{fault}");
    // The server reports a refused row, and the connection stays usable.
    let mut once = true;
    let again = control.load("lab_control", &Progress::new(1), |row| {
        row.int(-1);
        row.text("twice");
        std::mem::take(&mut once)
    });
    let fault = again.unwrap_err();
    assert!(matches!(fault.code(), Some("23505" | "1062")), "{fault}");
    control.execute("DROP TABLE lab_control").unwrap();
}

#[test]
fn rows_go_in_and_out() {
    does_all(Dialect::Postgres);
    does_all(Dialect::Mysql);
}

#[test]
fn a_silent_server_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mute =
        |scheme: &str| crate::arm::url::parse("test", &format!("{scheme}://u@127.0.0.1:{port}/d")).unwrap();
    let targets = [mute("postgres"), mute("mysql")];
    std::thread::scope(|scope| {
        for target in &targets {
            scope.spawn(|| {
                let limit = Duration::from_millis(200);
                let error = Control::connect_within(target, "d", limit).unwrap_err().to_string();
                let expected = format!("can't reach the server at 127.0.0.1:{port}: it does not answer");
                assert!(error.starts_with(&expected), "{error}");
            });
        }
    });
}

#[test]
fn a_stopped_run_waits_for_no_answer() {
    let stop = AtomicBool::new(false);
    assert_eq!(unless_stopped(&stop, || 7), Some(7));
    let (answer, unanswered) = channel::<()>();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| unless_stopped(&stop, move || unanswered.recv()));
        stop.store(true, Ordering::Relaxed);
        assert_eq!(waiting.join().unwrap(), None);
    });
    drop(answer);
}
