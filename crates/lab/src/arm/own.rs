//! Servers that the lab starts itself. Each has an empty data folder of its own, a Unix socket and
//! no port. It is as durable as it is by default, and gets the settings of its arm. Dropping the
//! value that holds a server ends it and removes its folder (`guard`).

mod mariadb;
mod node;
mod postgres;
mod programs;
mod serve;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

use super::control::Control;
use super::guard::{Guard, Signal};
use super::spec::{Kind, PLACES, Recipe};
use super::{Address, Dialect, Target};

const DATABASE: &str = "bench";

/// Sessions that a server of the lab's own admits, unless its settings say otherwise.
const CONNECTIONS: &str = "1100";

const START: Duration = Duration::from_secs(120);

struct Plan {
    /// The command, without its standard streams.
    command: Command,
    dialect: Dialect,
    socket: PathBuf,
    user: &'static str,
    /// A database that always exists.
    first: &'static str,
}

/// A server that the lab has started. Dropping it stops the server and removes its folder.
#[derive(Debug)]
pub(super) struct Own {
    guard: Guard,
    log: PathBuf,
}

impl Own {
    /// Starts a server for arm `arm` and creates its database. `executable` is the program that has
    /// `serve`. Ends early, with an error, once `stop` is set.
    pub(super) fn start(
        arm: &str,
        recipe: &Recipe,
        executable: &Path,
        stop: &AtomicBool,
    ) -> Result<(Self, Target), String> {
        let said = |error: String| format!("arm {arm}: {error}");
        let folder = new_folder(recipe).map_err(said)?;
        let signal = match recipe.kind {
            // PostgreSQL's fast shutdown; its SIGTERM waits for all sessions.
            Kind::Postgres => Signal::INT,
            Kind::Serve | Kind::MariaDb => Signal::TERM,
        };
        let mut guard = Guard::new(folder.path(), signal).map_err(said)?;
        // The guard removes it from now on.
        let folder = folder.keep();
        let planned = match recipe.kind {
            Kind::Serve => serve::plan(recipe, &folder, executable),
            Kind::Postgres => postgres::plan(recipe, &folder, &mut guard),
            Kind::MariaDb => mariadb::plan(recipe, &folder, &mut guard),
        };
        let mut plan = planned.map_err(said)?;
        let log = folder.join("log");
        let output = fs::File::create(&log).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = output.map_err(|error| said(format!("can't write {}: {error}", log.display())))?;
        let command = plan.command.stdin(Stdio::null()).stdout(out).stderr(err);
        match recipe.value("node").filter(|_| recipe.kind != Kind::Serve) {
            Some(node) => node::on(node, || guard.start(command)),
            None => guard.start(command),
        }
        .map_err(said)?;
        let mut target = Target {
            arm: arm.to_owned(),
            dialect: plan.dialect,
            address: Address::Unix(plan.socket),
            user: plan.user.to_owned(),
            password: None,
            database: DATABASE.to_owned(),
            processes: Vec::new(),
        };
        let mut control = await_answer(&mut guard, &target, plan.first, &log, stop).map_err(said)?;
        control.execute(&format!("CREATE DATABASE {DATABASE}")).map_err(|fault| said(fault.into()))?;
        target.processes.extend(guard.server());
        Ok((Self { guard, log }, target))
    }

    /// How the server has ended, in words; `None` while it runs.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.guard.ended()?;
        let last = lines(&self.log).pop().unwrap_or("nothing".to_owned());
        Some(format!("its server has ended ({status}); its last message: {last}"))
    }
}

/// Makes an empty folder with a short name: a socket's path has 107 bytes.
fn new_folder(recipe: &Recipe) -> Result<TempDir, String> {
    let parent = recipe.value("in").map_or_else(std::env::temp_dir, PathBuf::from);
    let made = tempfile::Builder::new().prefix("allcore-bench-").tempdir_in(&parent);
    made.map_err(|error| format!("can't make a folder in {}: {error}", parent.display()))
}

fn await_answer(
    guard: &mut Guard,
    target: &Target,
    database: &str,
    log: &Path,
    stop: &AtomicBool,
) -> Result<Control, String> {
    let until = Instant::now() + START;
    loop {
        let runs = guard.server().is_some();
        let fault = match Control::connect_to(target, database) {
            Ok(control) => return Ok(control),
            Err(fault) => fault,
        };
        if !runs {
            return Err(format!("the server ended at its start: {}", reason(log)));
        }
        // PostgreSQL reports that it is starting up (57P03); any other answer is final.
        if fault.code().is_some_and(|code| code != "57P03") {
            return Err(fault.into());
        }
        // Relaxed: the flag publishes nothing else.
        if stop.load(Ordering::Relaxed) {
            return Err("ended before its server had started".to_owned());
        }
        if Instant::now() > until {
            return Err(format!("the server did not answer within {} s: {}", START.as_secs(), reason(log)));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn lines(log: &Path) -> Vec<String> {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The line of a log that explains why a server ended.
fn reason(log: &Path) -> String {
    let lines = lines(log);
    let telling = |line: &&String| ["FATAL", "ERROR", "error:"].iter().any(|word| line.contains(word));
    lines.iter().find(telling).or(lines.last()).map_or("it said nothing".to_owned(), String::clone)
}

impl Recipe {
    /// A setting's value, where it has one; the last of several counts.
    fn value(&self, name: &str) -> Option<&str> {
        self.settings.iter().rev().find(|(one, _)| one == name)?.1.as_deref()
    }

    /// The settings that are for the server, not for the lab. Allcore binds itself to a node.
    fn passed_on(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let is_own = |name: &str| self.kind == Kind::Serve && name == "node";
        let own = self.settings.iter();
        let own = own.filter(move |(name, _)| is_own(name) || !PLACES.contains(&name.as_str()));
        own.map(|(name, value)| (name.as_str(), value.as_deref()))
    }
}

#[cfg(test)]
mod tests;
