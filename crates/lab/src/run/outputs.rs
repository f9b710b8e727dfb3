//! Outputs of a run: the table on standard output, the stored run, the reports.
//!
//! What must hold:
//! 1. A file is either complete or unchanged: the lab writes a new file beside it and renames that
//!    when it is complete.
//! 2. The lab tests before hours of measuring, not after, whether it can write everything.
//! 3. No output has the place of another output, or of a file that the command reads.
//! 4. No output contains a password.

use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::arm::url;
use crate::options::Outputs;
use crate::record::Report;
use crate::report;

/// The files for a run's report, besides standard output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files<'a> {
    pub json: Option<&'a Path>,
    pub outputs: &'a Outputs,
}

impl<'a> Files<'a> {
    /// The options that name a file, with that file.
    fn reports(self) -> impl Iterator<Item = (&'static str, &'a Path)> {
        let Outputs { markdown, html, .. } = self.outputs;
        let all = [("--json", self.json), ("--markdown", markdown.as_deref()), ("--html", html.as_deref())];
        all.into_iter().filter_map(|(option, path)| Some((option, path?)))
    }

    /// Tests whether all files can be written, and are neither one another nor one that is `read`.
    pub fn writable(self, read: &[impl AsRef<Path>]) -> Result<(), String> {
        let mut taken: Vec<(&str, PathBuf)> =
            read.iter().map(|path| ("an input", place(path.as_ref()))).collect();
        for (option, path) in self.reports().filter(|(_, path)| !is_stream(path)) {
            let place = place(path);
            if let Some((other, _)) = taken.iter().find(|one| one.1 == place) {
                return Err(format!("{option} {}: {other} is the same file: name another", path.display()));
            }
            taken.push((option, place));
            try_out(path).map_err(|error| {
                format!("{} can't be written: {error}: name a file in a folder that is there", path.display())
            })?;
        }
        match &self.outputs.plots {
            Some(folder) if !folder.is_dir() => {
                Err(format!("{} is no folder: name one that is there for the plots", folder.display()))
            }
            Some(folder) => tempfile::tempfile_in(folder)
                .map(drop)
                .map_err(|error| format!("no plots can be written into {}: {error}", folder.display())),
            None => Ok(()),
        }
    }

    /// Stores the run, where the user asked for it and it can be stored again; returns the path.
    pub fn store(self, report: &Report) -> Result<Option<&'a Path>, String> {
        let Some(path) = self.json.filter(|path| !is_stream(path)) else { return Ok(None) };
        put(path, &report.to_json())?;
        Ok(Some(path))
    }

    /// Writes all outputs; the table comes last, to standard output.
    pub fn write(self, report: &Report) -> Result<(), String> {
        let file = |path: Option<&Path>, text: &dyn Fn() -> String| match path {
            Some(path) => put(path, &text()),
            None => Ok(()),
        };
        let plots = |folder: &PathBuf| {
            let mut pictures = report::pictures(report).into_iter();
            pictures.try_for_each(|(_, name, svg)| put(&folder.join(name), &svg))
        };
        // The lab tries all: a failure of one must not cost the others.
        let outcomes = [
            file(self.json, &|| report.to_json()),
            file(self.outputs.markdown.as_deref(), &|| report::markdown(report)),
            file(self.outputs.html.as_deref(), &|| report::html(report)),
            self.outputs.plots.as_ref().map_or(Ok(()), plots),
            say(&report::table(report, width())),
        ];
        outcomes.into_iter().collect()
    }
}

/// Whether a file keeps nothing: a pipe, a device.
fn is_stream(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|name| path.starts_with(name))
        || fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file's absolute path without links; that of its folder if the file does not exist.
fn place(path: &Path) -> PathBuf {
    let there = fs::canonicalize(path);
    let new = || Ok(fs::canonicalize(folder(path))?.join(path.file_name().unwrap_or_default()));
    there.or_else(|_: io::Error| new()).unwrap_or_else(|_: io::Error| path.to_owned())
}

/// Opens a file for writing; removes it again if it did not exist before.
fn try_out(path: &Path) -> io::Result<()> {
    let there = fs::symlink_metadata(path).is_ok();
    OpenOptions::new().append(true).create(true).open(path)?;
    if there { Ok(()) } else { fs::remove_file(path) }
}

pub(super) fn put(path: &Path, text: &str) -> Result<(), String> {
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

pub(super) fn stored(path: &Path) -> Result<Report, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Report::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A command's words, quoted for a shell, without passwords.
pub(super) fn command(words: impl Iterator<Item = OsString>) -> Vec<String> {
    let word = |word: OsString| {
        let word = word.to_string_lossy();
        let word = if word.contains("://") { url::shown(&word) } else { word.into_owned() };
        shlex::try_quote(&word).map(String::from).unwrap_or(word)
    };
    words.map(word).collect()
}

/// Columns of the terminal; for a file or pipe, a large number.
pub(super) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    size.filter(|columns| *columns > 0).unwrap_or(120)
}

/// Prints a text to standard output, if any reader is left.
pub(super) fn say(text: &str) -> Result<(), String> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}
