//! Permissions of the data folder: only the server's own user may read it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Refuses a data folder that others than its owner may enter, or in which they may open a file.
/// The message names the command that mends it. An empty folder, made by hand for the purpose, is
/// closed to others.
pub fn keep_private(data: &Path) -> Result<(), String> {
    let fault = |fault: io::Error| at(data, &fault);
    let mode = match mode(data) {
        Ok(mode) => mode,
        // The open that follows makes the folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fault(error)),
    };
    if !data.join("ALLCORE").exists() {
        let mut found = fs::read_dir(data).map_err(fault)?.flatten();
        // An unfinished first start leaves the lock file alone. A folder with anything else is
        // refused later.
        if mode & OTHERS != 0 && found.all(|entry| entry.file_name() == "lock") {
            fs::set_permissions(data, Permissions::from_mode(0o700)).map_err(fault)?;
        }
        return Ok(());
    }
    let open = if mode & OTHERS != 0 { Some((data.to_path_buf(), mode)) } else { open_within(data)? };
    match open {
        None => Ok(()),
        Some((path, mode)) => Err(format!(
            "{} is open to others than its owner (permissions {mode:04o}): run 'chmod -R go= {}'",
            path.display(),
            data.display()
        )),
    }
}

/// Refuses a file with permissions that let others than its owner open it. The message names the
/// command that mends it.
pub fn check_private(file: &Path, mode: u32) -> Result<(), String> {
    match mode & OTHERS {
        0 => Ok(()),
        _ => Err(format!(
            "{file} is open to others than its owner (permissions {:04o}): run 'chmod 600 {file}'",
            mode & 0o7777,
            file = file.display()
        )),
    }
}

fn at(path: &Path, fault: &io::Error) -> String {
    format!("{}: {fault}", path.display())
}

fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o7777)
}

/// The first file or folder within a folder that others may open.
fn open_within(folder: &Path) -> Result<Option<(std::path::PathBuf, u32)>, String> {
    let within = |fault: io::Error| at(folder, &fault);
    for entry in fs::read_dir(folder).map_err(within)? {
        let path = entry.map_err(within)?.path();
        let mode = match mode(&path) {
            Ok(mode) => mode,
            // A server that has the folder open may remove files of its log.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(at(&path, &error)),
        };
        if mode & OTHERS != 0 {
            return Ok(Some((path, mode)));
        }
        if path.is_dir()
            && let Some(open) = open_within(&path)?
        {
            return Ok(Some(open));
        }
    }
    Ok(None)
}
