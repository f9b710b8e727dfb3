//! Shared parts of several modules' tests: servers to test against, expected texts in files, and
//! messages about skipped tests.

use std::fmt::Display;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use sync::atomic::AtomicBool;

use crate::arm::spec::Spec;
use crate::arm::{Address, Dialect, Running, Target};

/// Reports a skipped test, past the harness, which hides the output of tests that pass. `make test`
/// repeats these lines at its end.
pub fn skip(what: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {what}");
}

/// Compares a text with the file of that name in `snapshots`. `INSTA_UPDATE=always` writes it.
pub fn golden(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// Compares the lines that each case gives with the file of that name.
pub fn golden_cases(name: &str, cases: impl IntoIterator<Item = (impl Display, Vec<String>)>) {
    let shown = cases.into_iter().map(|(case, lines)| format!("# {case}\n{}\n", lines.join("\n")));
    golden(name, &shown.collect::<Vec<_>>().join("\n"));
}

/// Waits until this holds, for at most 60 s.
pub fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program that runs until this value is dropped.
pub struct Spawned(Child);

impl Spawned {
    fn new(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.process_group(0).spawn().unwrap())
    }

    /// A process that uses a CPU.
    pub fn busy() -> Self {
        Self::new("dd", &["if=/dev/zero", "of=/dev/null", "bs=1"])
    }

    /// A process that sleeps.
    pub fn sleeping() -> Self {
        Self::new("sleep", &["600"])
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A target at this address, for tests without a real server.
pub fn target_at(dialect: Dialect, address: Address) -> Target {
    Target {
        arm: "test".to_owned(),
        dialect,
        address,
        user: "me".to_owned(),
        password: Some("secret".to_owned()),
        database: "db".to_owned(),
        processes: Vec::new(),
    }
}

/// Whether a server could not be started because this machine lacks it; reports that.
pub fn is_absent(error: &str) -> bool {
    let absent = error.contains("is not installed") || error.contains("no user");
    if absent {
        skip(error);
    }
    absent
}

/// pgbench with the options that connect it to this database.
pub fn pgbench(target: &Target) -> Command {
    let (mut command, (host, port)) = (Command::new("pgbench"), target.address.libpq());
    command.args(["-h", &host, "-p", &port.to_string(), "-U", &target.user, &target.database]);
    command.env("PGPASSWORD", target.password.as_deref().unwrap_or_default());
    command
}

/// A server of this dialect, which all tests of this process share: the first one starts it, and it
/// ends with the process (`arm::guard`). `None`, with a message on why the test is skipped, where
/// it is not installed.
pub fn target(dialect: Dialect) -> Option<Target> {
    static POSTGRES: OnceLock<Option<Running>> = OnceLock::new();
    static MARIADB: OnceLock<Option<Running>> = OnceLock::new();
    let (own, arm) = match dialect {
        Dialect::Postgres => (&POSTGRES, "test=serve-postgres:shared_buffers=64MB fsync=off"),
        Dialect::Mysql => {
            // Room for the data of all tests: reading it again from the disk takes minutes. This
            // server survives no power failure, and needs not to.
            let arm = "test=serve-mariadb:innodb_buffer_pool_size=512M innodb_log_file_size=512M innodb_doublewrite=0 \
                       innodb_flush_log_at_trx_commit=0";
            (&MARIADB, arm)
        }
    };
    let start = || {
        let arm = Spec::parse(arm).unwrap();
        match Running::start(&arm, Path::new("/nowhere/executable"), &AtomicBool::new(false)) {
            Err(error) if is_absent(&error) => None,
            started => Some(started.unwrap()),
        }
    };
    own.get_or_init(start).as_ref().map(|running| running.target.clone())
}
