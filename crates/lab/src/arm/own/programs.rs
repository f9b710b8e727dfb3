//! A server's programs: their folder, and the user they run as.
//!
//! PostgreSQL refuses to run as root, and MariaDB nearly does. When root runs the lab, the programs
//! run as the user that their packages create.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::arm::guard::Guard;

pub(super) struct Programs {
    folder: PathBuf,
    /// The folder of its libraries, for a build that was moved.
    libraries: Option<PathBuf>,
    /// User and group of the programs, if they are not the lab's.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Finds the folder that has a server's main program: the named one, else one of PATH or of the
    /// usual places (a `*` stands for the last match). When root runs the lab, the programs run as
    /// `user`.
    pub(super) fn find(
        given: Option<&str>,
        server: &str,
        user: &str,
        places: &[&str],
    ) -> Result<Self, String> {
        let has = |folder: &PathBuf| folder.join(server).is_file();
        let folder = match given {
            Some(folder) => program_in(folder, server.as_ref()).map(|_| PathBuf::from(folder))?,
            None => {
                let path = env::var_os("PATH").unwrap_or_default();
                let usual = places.iter().filter_map(|place| last_of(place));
                env::split_paths(&path).chain(usual).find(has).ok_or_else(|| {
                    format!("{server} is not installed; install it, or say where it is: bin=/folder")
                })?
            }
        };
        // A link in PATH leads to the folder that has the companion programs.
        let real =
            fs::canonicalize(folder.join(server)).ok().and_then(|file| Some(file.parent()?.to_path_buf()));
        let libraries = given.and_then(|_| fs::canonicalize(folder.join("../lib")).ok());
        let user = if rustix::process::geteuid().is_root() {
            Some(ids_of(user).ok_or_else(|| missing(server, user))?)
        } else {
            None
        };
        Ok(Self { folder: real.unwrap_or(folder), libraries, user })
    }

    /// Makes the programs' user the owner of a folder.
    pub(super) fn give(&self, folder: &Path) -> Result<(), String> {
        let Some((user, group)) = self.user else { return Ok(()) };
        let given = chown(folder, Some(user), Some(group));
        given.map_err(|error| format!("can't give {} to user {user}: {error}", folder.display()))
    }

    /// A command for one of the programs, as their user.
    pub(super) fn command(&self, name: &str) -> Result<Command, String> {
        let beside = self.folder.join(name);
        let path = env::var_os("PATH").unwrap_or_default();
        let elsewhere =
            || env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
        let program = Some(beside).filter(|file| file.is_file()).or_else(elsewhere);
        let program = program.ok_or_else(|| format!("{name} is not installed beside the server"))?;
        let mut command = Command::new(program);
        // The programs may lack access to the lab's folder and its user's home.
        command.current_dir("/").env_remove("HOME");
        if let Some(libraries) = &self.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        Ok(command)
    }

    pub(super) fn run(&self, command: &mut Command, guard: &mut Guard) -> Result<(), String> {
        let output = guard.run(command)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        Err(format!("{} failed: {}", command.get_program().display(), last.trim()))
    }
}

/// The program of this name in the folder that the user named.
pub(super) fn program_in(folder: &str, name: &OsStr) -> Result<PathBuf, String> {
    let program = Path::new(folder).join(name);
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("there is no {} in {folder}", name.display())),
    }
}

/// The folder that a place with one `*` names: the last match, ordered by numbers, then names.
fn last_of(place: &str) -> Option<PathBuf> {
    let Some((before, after)) = place.split_once('*') else { return Some(PathBuf::from(place)) };
    let (parent, prefix) = before.rsplit_once('/')?;
    let names = fs::read_dir(parent).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let fitting = names.filter(|name| name.starts_with(prefix));
    let number =
        |name: &String| name[prefix.len()..].trim_matches(|c: char| !c.is_ascii_digit()).parse::<u32>().ok();
    let last = fitting.max_by_key(|name| (number(name), name.clone()))?;
    Some(PathBuf::from(format!("{parent}/{last}{after}")))
}

fn missing(server: &str, user: &str) -> String {
    format!("{server} does not run as root, and there is no user {user} to run it as (useradd {user})")
}

/// A user's number and its group's.
fn ids_of(user: &str) -> Option<(u32, u32)> {
    let ask = |what: &str| {
        let output = Command::new("id").args([what, user]).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    Some((ask("-u")?, ask("-g")?))
}
