//! Files and the terminal, to which every output goes.
//!
//! What must hold: a file is either complete or unchanged. The lab writes a new file beside it and
//! renames that when it is complete.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Longest file that the lab reads, in bytes. The stored run of a whole sweep has about 1 MB.
const LONGEST: u64 = 64 << 20;

/// The text of a file that the user names: a stored run, a script.
///
/// # Errors
/// Those of the system. [`ErrorKind::InvalidInput`] if the path holds no regular file, because a
/// FIFO may wait and a device may deliver for ever. [`ErrorKind::FileTooLarge`] past 64 MiB.
pub fn text(path: &Path) -> io::Result<String> {
    text_up_to(path, LONGEST)
}

fn text_up_to(path: &Path, longest: u64) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file: name one"));
    }
    let mut text = String::new();
    let mut file = File::open(path)?.take(longest + 1);
    let read = file.read_to_string(&mut text);
    if file.limit() == 0 {
        let why = format!("the file is longer than {longest} bytes, the most that the lab reads");
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    read.map(|_| text)
}

/// Whether a file keeps nothing: a pipe, a device.
pub(crate) fn is_stream(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|name| path.starts_with(name))
        || fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir())
}

pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Tests whether a file can be written.
///
/// # Errors
/// A line with the file's name, the fault and the remedy.
pub fn writable(path: &Path) -> Result<(), String> {
    try_out(path).map_err(|error| {
        format!("{} can't be written: {error}: name a file in a folder that is there", path.display())
    })
}

/// Opens a file for writing; removes it again if it did not exist before.
fn try_out(path: &Path) -> io::Result<()> {
    let there = fs::symlink_metadata(path).is_ok();
    OpenOptions::new().append(true).create(true).open(path)?;
    if there { Ok(()) } else { fs::remove_file(path) }
}

/// Writes a file.
///
/// # Errors
/// A line with the file's name and the fault.
pub fn put(path: &Path, text: &str) -> Result<(), String> {
    replace(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a new file beside the old one, then renames it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if is_stream(path) {
        return fs::write(path, text);
    }
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = tempfile::Builder::new()
        .prefix(".allcore-bench-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(&path));
    // A file may be writable in a folder that is not.
    let Ok(mut beside) = beside else { return fs::write(path, text) };
    if let Ok(before) = fs::metadata(&path) {
        beside.as_file().set_permissions(before.permissions())?;
    }
    beside.write_all(text.as_bytes())?;
    beside.as_file().sync_all()?;
    beside.persist(path).map(drop).map_err(|error| error.error)
}

/// Columns of the terminal; for a file or pipe, a large number.
pub fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    size.filter(|columns| *columns > 0).unwrap_or(120)
}

/// Prints a text to standard output, if any reader is left.
///
/// # Errors
/// A line with the fault.
pub fn print(text: &str) -> Result<(), String> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_past_the_limit_is_refused_before_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        fs::write(&path, "four").unwrap();
        assert_eq!(text_up_to(&path, 4).unwrap(), "four");
        assert_eq!(text_up_to(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        // A hole of 1 TiB takes no space.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let refused = text(&path).unwrap_err().to_string();
        assert_eq!(refused, "the file is longer than 67108864 bytes, the most that the lab reads");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(text(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_path_without_a_regular_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for path in [folder.path(), &fifo, Path::new("/dev/zero")] {
            let refused = text(path).unwrap_err();
            assert_eq!(refused.to_string(), "not a regular file: name one", "{}", path.display());
        }
        assert_eq!(text(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
