//! The passwords file of a data folder: one line a user, `name verifier`, never a password itself.
//!
//! What must hold:
//!
//! 1. The verifier follows the last blank of its line. So a name may contain blanks, but no end of
//!    a line.
//! 2. The file is replaced in one step. A server that reads it meanwhile sees the old file or the
//!    new one.
//! 3. A line that cannot be read makes the whole file unreadable. A reader never goes on with some
//!    of the users.
//! 4. A file that others than its owner may open is refused.
//! 5. A change reads and replaces the file under a lock of its own, so no change undoes another.
//!    The lock is a file beside, because a lock on the replaced file would exclude nobody.

use crate::folder;
use runtime::file::FileLock;
use server::scram::Verifier;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Tries to lock the file after the first one. A change takes some milliseconds.
const LOCK_TRIES: u32 = 2000;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The users who have a password.
#[derive(Debug, Default, Clone)]
pub struct Passwords {
    users: BTreeMap<String, Verifier>,
}

impl Passwords {
    /// The path of a data folder's file.
    pub fn file(data: &Path) -> PathBuf {
        data.join("passwords")
    }

    /// Reads the file of `data`; a folder without one has no users.
    pub fn read(data: &Path) -> Result<Self, String> {
        let path = Self::file(data);
        let (text, mode) = match read(&path) {
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(format!("cannot read {}: {e}", path.display())),
        };
        folder::check_private(&path, mode)?;
        let mut users = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let entry =
                line.rsplit_once(' ').and_then(|(user, verifier)| Some((user, verifier.parse().ok()?)));
            let (user, verifier) =
                entry.ok_or_else(|| format!("{}: line {} is damaged", path.display(), index + 1))?;
            users.insert(user.to_owned(), verifier);
        }
        Ok(Self { users })
    }

    /// Whether no user has a password.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// The verifier of `user`'s password.
    pub fn verifier(&self, user: &str) -> Option<Verifier> {
        self.users.get(user).cloned()
    }

    /// Sets a user's password and replaces the file of `data` in one step.
    pub fn set(data: &Path, user: &str, password: &str) -> Result<(), String> {
        if user.is_empty() || user.contains(['\n', '\r']) {
            return Err(format!("{user:?} is no name of a user"));
        }
        let verifier = Verifier::of_password(password);
        let path = Self::file(data);
        let _lock = lock(&data.join("passwords.lock"))?;
        let mut users = Self::read(data)?.users;
        users.insert(user.to_owned(), verifier);
        let lines: String = users.iter().map(|(user, verifier)| format!("{user} {verifier}\n")).collect();
        runtime::file::replace(&path, lines.as_bytes())
            .map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

/// Locks the file, which it creates if needed. Waits while another process changes passwords, for
/// at most 10 s.
fn lock(path: &Path) -> Result<FileLock, String> {
    let mut tries = 0;
    loop {
        match runtime::file::lock_exclusive(path) {
            Ok(lock) => return Ok(lock),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && tries < LOCK_TRIES => {
                tries += 1;
                runtime::time::sleep_thread(LOCK_PAUSE);
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let path = path.display();
                return Err(format!("another 'allcore passwd' holds {path}: try again once it has ended"));
            }
            Err(e) => return Err(format!("cannot lock {}: {e}", path.display())),
        }
    }
}

/// A file's text and permissions.
fn read(path: &Path) -> io::Result<(String, u32)> {
    let mut file = runtime::file::open_to_read(path)?;
    let mode = file.mode()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((text, mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn passwords_are_kept_as_verifiers_and_replaced() {
        let data = tempfile::tempdir().unwrap();
        assert!(Passwords::read(data.path()).unwrap().is_empty());
        for (user, password) in [("ada", "one"), ("grace hopper", "two"), ("ada", "three")] {
            Passwords::set(data.path(), user, password).unwrap();
        }
        let text = fs::read_to_string(Passwords::file(data.path())).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains("three"));
        let passwords = Passwords::read(data.path()).unwrap();
        assert!(passwords.verifier("ada").is_some() && passwords.verifier("grace hopper").is_some());
        let file = Passwords::file(data.path());
        fs::write(&file, "ada nonsense\n").unwrap();
        assert!(Passwords::read(data.path()).unwrap_err().contains("line 1"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Passwords::read(data.path()).unwrap_err().contains("(permissions 0640)"));
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let data = tempfile::tempdir().unwrap();
        let set = |user: usize| Passwords::set(data.path(), &format!("user{user}"), "secret").unwrap();
        std::thread::scope(|scope| {
            for user in 0..8 {
                scope.spawn(move || set(user));
            }
        });
        assert_eq!(Passwords::read(data.path()).unwrap().users.len(), 8);
    }
}
