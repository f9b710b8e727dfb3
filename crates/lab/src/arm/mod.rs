//! Arms: the servers that the lab measures side by side.
//!
//! [`spec::Spec`] is an arm as the user names it, [`Running`] an arm that clients can connect to.
//! [`Running::start`] reaches or starts the server and asks it for its version and settings.

pub mod about;
pub mod control;
mod guard;
mod local;
mod own;
pub mod spec;
pub mod url;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sync::atomic::AtomicBool;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Dialect {
    /// PostgreSQL's protocol 3.0 and SQL.
    Postgres,
    /// MySQL's protocol and SQL.
    Mysql,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp(String, u16),
    /// The socket's file itself.
    Unix(PathBuf),
}

impl Address {
    /// Host and port as PostgreSQL's clients name them. A socket folder/.s.PGSQL.port is its folder
    /// and that port.
    pub fn libpq(&self) -> (String, u16) {
        match self {
            Self::Tcp(host, port) => (host.clone(), *port),
            Self::Unix(socket) => {
                let folder = socket.parent().unwrap_or(Path::new("/")).display().to_string();
                let port = socket.extension().and_then(|port| port.to_str()?.parse().ok());
                (folder, port.unwrap_or(5432))
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub arm: String,
    pub dialect: Dialect,
    pub address: Address,
    pub user: String,
    pub password: Option<String>,
    pub database: String,
    /// Processes whose work counts as the server's, where they run on this machine. The first of
    /// each server is the parent of its others.
    pub processes: Vec<u32>,
}

/// An arm that can be measured. Dropping the last arm on a server that the lab started stops the
/// server.
#[derive(Debug, Clone)]
pub struct Running {
    pub target: Target,
    /// The server's description of itself. Settings that it got from the lab and does not report
    /// come first.
    pub about: about::About,
    /// The program that stands in front of the server's processes, where the lab cannot find these.
    pub unseen: Option<String>,
    own: Option<Arc<Mutex<own::Own>>>,
}

impl Running {
    /// Reaches or starts an arm's server. `executable` is the program that has a `serve` command;
    /// `stop` ends a start that takes too long. Errors are one line that names the arm.
    pub fn start(spec: &spec::Spec, executable: &Path, stop: &AtomicBool) -> Result<Self, String> {
        let (own, mut target) = match &spec.source {
            spec::Source::Runs(target) => (None, target.clone()),
            spec::Source::Own(recipe) => {
                let (own, target) = own::Own::start(&spec.name, recipe, executable, stop)?;
                (Some(Arc::new(Mutex::new(own))), target)
            }
        };
        let ask = || about::About::ask(&mut control::Control::connect(&target)?);
        let mut about = ask().map_err(|fault| format!("arm {}: {fault}", spec.name))?;
        if let spec::Source::Own(recipe) = &spec.source {
            // The server may report another value than the one it got.
            let is_told = |given: &str| {
                let given = given.to_lowercase().replace('-', "_");
                about.settings.iter().any(|(name, _)| *name == given)
            };
            let given = recipe.settings.iter().filter(|(name, _)| !is_told(name));
            let given: Vec<(String, String)> =
                given.map(|(name, value)| (name.clone(), value.clone().unwrap_or_default())).collect();
            about.settings.splice(0..0, given);
        }
        let mut unseen = None;
        if target.processes.is_empty() {
            match local::process(&target.address) {
                Ok(process) => target.processes.extend(process),
                Err(who) => unseen = Some(who),
            }
        }
        Ok(Self { target, about, unseen, own })
    }

    /// Another arm on the same server.
    pub fn under(&self, name: &str) -> Self {
        let mut other = self.clone();
        name.clone_into(&mut other.target.arm);
        other
    }

    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// The target, and a function that reports how its server has ended. The function knows only
    /// servers that the lab started.
    pub fn watched(&self) -> (&Target, impl FnMut() -> Option<String> + '_) {
        let ended = |own: &Arc<Mutex<own::Own>>| own.lock().unwrap_or_else(PoisonError::into_inner).ended();
        (&self.target, move || self.own.as_ref().and_then(ended))
    }
}
