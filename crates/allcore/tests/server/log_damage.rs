//! Damage in the log of a server that was killed, copies of files from another time, and a check
//! that changes nothing. A start has every acknowledged commit or refuses; it never loses one
//! silently, and never takes an ordinary kill for damage.

use crate::common::{Server, allcore, text};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// Waiting longer than this is a failure.
const LONG: Duration = Duration::from_secs(120);

/// Content and time of change of every file below a folder.
type Contents = BTreeMap<PathBuf, (SystemTime, Vec<u8>)>;

fn contents(folder: &Path) -> Contents {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let changed = entry.metadata().unwrap().modified().unwrap();
            found.insert(path.clone(), (changed, fs::read(&path).unwrap()));
        }
    }
    found
}

/// The files of the log, oldest first.
fn segments(server: &Server) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(server.data().join("log")).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Where the log says `needle` first: the file and the place in it.
fn find_in_log(server: &Server, needle: &str) -> (PathBuf, u64) {
    segments(server)
        .into_iter()
        .find_map(|path| {
            let bytes = fs::read(&path).unwrap();
            let at = bytes.windows(needle.len()).position(|window| window == needle.as_bytes())?;
            Some((path, at as u64))
        })
        .unwrap_or_else(|| panic!("{needle} is not in the log"))
}

fn flip(path: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x20], at).unwrap();
}

/// The error of a start that has to be refused.
fn refused(server: &Server, extra: &[&str]) -> String {
    let mut command = allcore();
    command.arg("serve").arg("--data").arg(server.data()).args(["--listen", "127.0.0.1:0"]);
    let output = command.args(["--buffers", "16MiB"]).args(extra).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

fn check(server: &Server) -> (Option<i32>, String) {
    let output = allcore().arg("check").arg("--data").arg(server.data()).output().unwrap();
    (output.status.code(), text(&output))
}

/// A killed server whose table `t` has the rows 1 to `rows`, each acknowledged by itself.
fn killed(rows: i32) -> Server {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.psql("create table t (id int primary key, note text not null)");
    let mut client = server.connect();
    for id in 1..=rows {
        client.batch_execute(&format!("insert into t values ({id}, 'needle-{id:06}')")).unwrap();
    }
    server.crash();
    server
}

#[test]
fn a_check_that_nobody_reads_still_ends_with_its_status() {
    let server = killed(1);
    // The reader of the pipe is gone before the command begins.
    let (reader, gone) = std::io::pipe().unwrap();
    drop(reader);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for (output, status) in [(Stdio::from(gone), 0), (Stdio::from(full), 1)] {
        let mut command = allcore();
        command.arg("check").arg("--data").arg(server.data()).stdout(output).stderr(Stdio::piped());
        let ended = command.output().unwrap();
        let said = text(&ended);
        assert_eq!(ended.status.code(), Some(status), "{said}");
        assert_eq!(said.contains("cannot write to standard output"), status == 1, "{said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn damage_is_named_and_given_up_only_when_told() {
    let mut server = killed(300);
    let (segment, at) = find_in_log(&server, "needle-000200");
    flip(&segment, at);
    let before = contents(&server.data());
    let (status, said) = check(&server);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("the log is damaged at ") && said.contains("the first lost one"), "{said}");
    let said = refused(&server, &[]);
    assert!(
        said.contains("the log is damaged at ") && said.contains("the last good commit ends at"),
        "{said}"
    );
    let (_, after) = said.split_once("--discard-log-after ").expect("the way out is named");
    let position = after.split_whitespace().next().unwrap().to_owned();
    let other = refused(&server, &["--discard-log-after", "0/1000"]);
    assert!(other.contains("--discard-log-after 0/1000 does not fit"), "{other}");
    assert!(contents(&server.data()) == before, "refusing and checking change nothing");

    for place in ["recovery.redo", "recovery.renounced"] {
        let mut command = allcore();
        command.args(["serve", "--listen", "127.0.0.1:0", "--discard-log-after", &position, "--data"]);
        command.arg(server.data()).env("ALLCORE_STOP", format!("{place}=kill"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), None, "{place}: {}", text(&output));
        assert!(refused(&server, &[]).contains(&format!("--discard-log-after {position} ")), "{place}");
    }
    server.arguments(&["--discard-log-after", &position]);
    server.launch();
    assert_eq!(server.psql("select count(*), max(id) from t"), "199|199", "position {position}");
    let log = server.log();
    let kept: Vec<PathBuf> = fs::read_dir(server.data())
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log-discarded-"))
        .collect();
    assert!(kept.len() == 1 && log.contains(&kept[0].display().to_string()), "{kept:?}\n{log}");
    let copy = fs::read(kept[0].join(segment.file_name().unwrap())).unwrap();
    assert!(copy == before[&segment].1, "what was discarded is kept");
    server.psql("insert into t select i, 'again' from generate_series(200, 400) i");
    server.crash();
    // The option can't stay: the log is whole again.
    let said = refused(&server, &["--discard-log-after", &position]);
    assert!(said.contains("does not fit: the log is whole"), "{said}");
    server.arguments(&[]);
    server.launch();
    assert_eq!(server.psql("select count(*) from t"), "400");
    server.stop();
    server.check();
}

/// Also the last acknowledged commit, behind which nothing was ever written, and without the file
/// that tells the end.
#[test]
fn no_damage_goes_unnoticed() {
    let server = killed(60);
    let good = contents(&server.data());
    let restore = || {
        for (path, (_, bytes)) in &good {
            fs::write(path, bytes).unwrap();
            // One that was removed is made anew, and a start refuses files that others may read.
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        }
    };
    for (with_file, row) in [(true, 60), (true, 59), (true, 2), (false, 58), (false, 30)] {
        let (segment, at) = find_in_log(&server, &format!("needle-{row:06}"));
        flip(&segment, at + 7);
        if !with_file {
            fs::remove_file(server.data().join("durable")).unwrap();
        }
        let said = refused(&server, &[]);
        assert!(said.contains("the log is damaged at "), "row {row}: {said}");
        assert_eq!(check(&server).0, Some(1), "row {row}");
        restore();
        // A block that is zeros, from the row's place on.
        let (segment, at) = find_in_log(&server, &format!("needle-{row:06}"));
        let file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
        let length = if row < 60 { 64 } else { 1 << 16 };
        file.write_all_at(&vec![0; length], at).unwrap();
        if with_file || row < 58 {
            assert!(refused(&server, &[]).contains("the log is damaged at "), "row {row}");
        }
        restore();
    }
    // One whole copy of the control file is enough. The check succeeds and names the damaged copy.
    for at in [100, 4196] {
        flip(&server.data().join("control"), at);
        let (status, said) = check(&server);
        assert!(status == Some(0) && said.contains("one of the two copies in file control"), "{said}");
        restore();
    }
    // A segment that is cut within what was durable, and one that is cut behind it.
    let (segment, at) = find_in_log(&server, "needle-000060");
    fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(at).unwrap();
    assert!(refused(&server, &[]).contains("the log is damaged at "));
    restore();
    fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(at + (1 << 20)).unwrap();
    let (status, said) = check(&server);
    assert_eq!(status, Some(0), "{said}");
    let mut server = server;
    server.launch();
    assert_eq!(server.psql("select count(*) from t"), "60");
}

/// A copy of a running server's folder whose `pages` was copied last: its pages hold changes that
/// its log does not.
#[test]
fn pages_newer_than_the_log_are_noticed() {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.psql(
        "create table t (id int primary key, note text not null); create table sound (id int primary key);
         insert into t select i, repeat('n', 800) from generate_series(1, 40000) i",
    );
    // A checkpoint, behind which the log names none of these pages.
    server.stop();
    server.launch();
    server.psql("insert into sound values (1)");
    server.crash();
    let old = contents(&server.data());
    server.launch();
    // More than the buffers hold, so that most of its pages go to disk.
    server.psql("update t set note = repeat('m', 800)");
    server.crash();
    for segment in segments(&server) {
        fs::remove_file(segment).unwrap();
    }
    for (path, (_, bytes)) in old.iter().filter(|(path, _)| !path.ends_with("pages")) {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    let (status, said) = check(&server);
    assert!(status == Some(1) && said.contains(": newer than the end of the log"), "{said}");
    server.launch();
    assert_eq!(server.psql("select * from sound"), "1");
    let said = server.psql_error("select count(note) from t");
    assert!(said.contains("newer than the end of the log"), "{said}");
}

#[test]
fn files_of_another_time_are_noticed() {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.psql("create table t (id int primary key, note text not null)");
    server.stop();
    let old = contents(&server.data());
    for _ in 0..2 {
        server.launch();
        server.psql("insert into t select count(*), 'n' from t");
        server.stop();
    }
    let new = contents(&server.data());
    let data = server.data();
    let put = |name: &str, from: &Contents| fs::write(data.join(name), &from[&data.join(name)].1).unwrap();
    put("pages", &old);
    let said = refused(&server, &[]);
    assert!(said.contains("file pages is an older copy"), "{said}");
    assert_eq!(check(&server).0, Some(1));
    put("pages", &new);
    put("control", &old);
    let said = refused(&server, &[]);
    assert!(said.contains("the control file is an older copy"), "{said}");
    put("control", &new);

    let mut other = Server::start(&["--buffers", "16MiB"]);
    other.stop();
    fs::copy(other.data().join("pages"), data.join("pages")).unwrap();
    let said = refused(&server, &[]);
    assert!(said.contains("belongs to another data folder"), "{said}");
    put("pages", &new);
    server.launch();
    assert_eq!(server.psql("select count(*) from t"), "2");
}

#[test]
fn a_check_changes_nothing() {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.psql(
        "create table t (id int primary key, note text not null); create index on t (note);
         insert into t select i, repeat('n', 400) || i from generate_series(1, 20000) i",
    );
    let (status, said) = check(&server);
    assert!(status == Some(1) && said.contains("in use"), "{said}");
    // A transaction to be undone, and tables nobody has freed yet.
    let mut client = server.connect();
    client.batch_execute("begin; update t set note = 'never' where id <= 5000").unwrap();
    server.psql("create table gone as select * from t; drop table gone; insert into t values (0, 'last')");
    server.crash();
    let before = contents(&server.data());
    for _ in 0..2 {
        let (status, said) = check(&server);
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains("all is well") && said.contains("20001 rows"), "{said}");
    }
    let after = contents(&server.data());
    for (path, file) in &after {
        assert!(before.get(path) == Some(file), "{} was changed", path.display());
    }
    assert_eq!(after.len(), before.len());
    // Without its mark an end that is damage cannot be told from an unfinished one.
    let missing = |said: &str| said.contains("durable is missing or damaged");
    let (mark, aside) = (server.data().join("durable"), server.data().join("durable.aside"));
    assert!(!missing(&check(&server).1));
    fs::rename(&mark, &aside).unwrap();
    let said = check(&server).1;
    assert!(missing(&said), "{said}");
    fs::rename(&aside, &mark).unwrap();
    server.launch();
    assert_eq!(server.psql("select count(*) from t where note like 'n%'"), "20000");
    server.stop();
    let before = contents(&server.data());
    server.check();
    assert!(contents(&server.data()) == before);
}

/// Bursts that end within records, commits that follow each other, kills at any moment.
#[test]
fn kills_are_never_taken_for_damage() {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server
        .psql("create table t (id bigint primary key, note text not null); create table filled (note text)");
    let acknowledged = AtomicI64::new(0);
    for round in 0..10u64 {
        let stop = AtomicBool::new(false);
        let pid = server.pid().to_string();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let Ok(mut client) = server.try_connect() else { return };
                while !stop.load(Ordering::Relaxed) {
                    let id = acknowledged.load(Ordering::Relaxed) + 1;
                    let insert = format!("insert into t values ({id}, 'n') on conflict do nothing");
                    if client.batch_execute(&insert).is_err() {
                        return;
                    }
                    acknowledged.store(id, Ordering::Relaxed);
                }
            });
            scope.spawn(|| {
                let Ok(mut client) = server.try_connect() else { return };
                let fill = "insert into filled select repeat('f', 1500) from generate_series(1, 3000)";
                while !stop.load(Ordering::Relaxed) {
                    if client
                        .batch_execute(&format!("begin; {fill}; rollback; {fill}; truncate filled"))
                        .is_err()
                    {
                        return;
                    }
                }
            });
            // The moment of the kill is what varies; nothing depends on how much was done by then.
            std::thread::sleep(Duration::from_millis(150 + round * 37));
            std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
            stop.store(true, Ordering::Relaxed);
        });
        assert!(server.wait_end(LONG), "killed");
        server.launch();
        let there: i64 = server.connect().query_one("select count(*) from t", &[]).unwrap().get(0);
        let promised = acknowledged.load(Ordering::Relaxed);
        assert!(there == promised || there == promised + 1, "{there} of {promised} in round {round}");
        acknowledged.store(there, Ordering::Relaxed);
    }
}
