//! Permissions of the data folder: only the server's own user may read it.

use std::io;
use std::path::Path;

use runtime::file;

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Refuses a data folder that others than its owner may enter, or in which they may open a file.
/// The message names the command that mends it. An empty folder, made by hand for the purpose, is
/// closed to others.
pub fn keep_private(data: &Path) -> Result<(), String> {
    let fault = |fault: io::Error| at(data, &fault);
    let mode = match file::access(data) {
        Ok(access) => access.mode,
        // The open that follows makes the folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fault(error)),
    };
    if !file::exists(&data.join("ALLCORE")).map_err(fault)? {
        let found = file::list(data).map_err(fault)?;
        // An unfinished first start leaves the lock file alone. A folder with anything else is
        // refused later.
        if mode & OTHERS != 0 && found.iter().all(|path| path.ends_with("lock")) {
            file::set_mode(data, 0o700).map_err(fault)?;
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

/// The first file or folder within a folder that others may open.
fn open_within(folder: &Path) -> Result<Option<(std::path::PathBuf, u32)>, String> {
    for path in file::list(folder).map_err(|fault| at(folder, &fault))? {
        let access = match file::access(&path) {
            Ok(access) => access,
            // A server that has the folder open may remove files of its log.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(at(&path, &error)),
        };
        if access.mode & OTHERS != 0 {
            return Ok(Some((path, access.mode)));
        }
        if access.is_folder
            && let Some(open) = open_within(&path)?
        {
            return Ok(Some(open));
        }
    }
    Ok(None)
}
