//! Sessions beside each other, played by PostgreSQL's own isolationtester: the files
//! `specs/*.spec`. Its output, every wait included, must be the same as on PostgreSQL 18
//! (`specs/*.out`). `make isolation` plays PostgreSQL's specs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Server, skip, text};

/// Seconds after which isolationtester gives a step up that neither ends nor waits for a lock.
const STEP: &str = "600";

/// The program of Debian's newest package that has it.
fn tester() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let path = |version: &Path| version.join("lib/pgxs/src/test/isolation/isolationtester");
    versions.flatten().map(|version| path(&version.path())).filter(|path| path.exists()).max()
}

#[test]
fn sessions_wait_and_go_on_as_in_postgresql() {
    let Some(tester) = tester() else { return skip("isolation specs: there is no isolationtester") };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specs");
    let mut specs: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    specs.retain(|path| path.extension().is_some_and(|extension| extension == "spec"));
    specs.sort();
    assert!(specs.len() >= 8, "{specs:?}");
    let server = Server::start(&[]);
    let target = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port);
    for spec in specs {
        let mut command = Command::new(&tester);
        command.arg(&target).env("PGISOLATIONTIMEOUT", STEP);
        command.stdin(Stdio::from(std::fs::File::open(&spec).unwrap()));
        let said = text(&command.output().unwrap());
        let expected = std::fs::read_to_string(spec.with_extension("out")).unwrap();
        assert!(said == expected, "{}\n{said}\nserver log:\n{}", spec.display(), server.log());
    }
}
