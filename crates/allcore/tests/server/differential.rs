//! The same scripts give the same output, to the letter, as PostgreSQL 18 gave when it was
//! recorded.
//!
//! psql runs each `sql/<theme>.sql` in a database of its own. `sql/<theme>.out` has PostgreSQL 18's
//! answers: rows, tags, SQLSTATEs, messages, details, hints, positions and names. Only the place in
//! the server's own source is left out. With `ALLCORE_RECORD=1` and PostgreSQL at hand the files
//! are recorded afresh, never from Allcore's own answers.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Server, succeed};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql")
}

/// The scripts of a folder, by name.
pub fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut scripts: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .collect();
    scripts.sort();
    scripts
}

/// Runs a script in a new database; gives what psql printed, rows and errors in their order.
pub fn answer(mut client: impl FnMut(&str) -> Command, script: &Path) -> String {
    let database = format!("differential_{}", script.file_stem().unwrap().to_str().unwrap());
    for sql in [format!("drop database if exists {database}"), format!("create database {database}")] {
        succeed(client("psql").args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", &sql]), "");
    }
    let mut command = client("sh");
    command.args(["-c", "exec psql -X -a -A 2>&1"]).env("PGDATABASE", &database);
    command.env("PGCLIENTENCODING", "UTF8").env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut text = b"\\set VERBOSITY verbose\n".to_vec();
    text.extend(fs::read(script).unwrap());
    let writer = std::thread::spawn(move || input.write_all(&text).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines()
        .filter(|line| !line.starts_with("LOCATION:  "))
        .fold(String::new(), |said, line| said + line + "\n")
}

/// The first lines that differ, with the statement they answer.
pub fn difference(expected: &str, source: &str, actual: &str) -> Option<String> {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let same = expected.iter().zip(&actual).take_while(|(a, b)| a == b).count();
    if same == expected.len() && same == actual.len() {
        return None;
    }
    let show = |lines: &[&str]| {
        lines[same.saturating_sub(4).min(lines.len())..(same + 8).min(lines.len())].join("\n")
    };
    Some(format!("from line {}\n--- {source}\n{}\n--- Allcore\n{}", same + 1, show(&expected), show(&actual)))
}

/// Records PostgreSQL's answers, when it is asked for and PostgreSQL is there.
fn record() {
    let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/peers/pg18.sh");
    if std::env::var_os("ALLCORE_RECORD").is_none_or(|value| value != "1") || !peer.exists() {
        return;
    }
    let said = succeed(Command::new(&peer).arg("start"), "");
    let socket = said.trim_end().lines().last().unwrap().to_owned();
    for script in scripts(&folder()) {
        let client = |program: &str| {
            let mut command = Command::new(program);
            command.env("PGHOST", &socket).env("PGUSER", "postgres").env("PGDATABASE", "postgres");
            command
        };
        fs::write(script.with_extension("out"), answer(client, &script)).unwrap();
    }
}

#[test]
fn scripts_are_answered_as_postgresql_answers_them() {
    record();
    let server = Server::start(&[]);
    let mut wrong = Vec::new();
    let scripts = scripts(&folder());
    assert!(!scripts.is_empty());
    for script in &scripts {
        let expected = fs::read_to_string(script.with_extension("out")).unwrap();
        let actual = answer(|program| server.client(program), script);
        if let Some(difference) = difference(&expected, "PostgreSQL", &actual) {
            wrong.push(format!("{}: {difference}", script.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
