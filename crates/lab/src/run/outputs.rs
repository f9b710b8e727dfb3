//! Outputs of a run: the table on standard output, the stored run, the reports.
//!
//! What must hold:
//! 1. The lab tests before hours of measuring, not after, whether it can write everything.
//! 2. No output has the place of another output, or of a file that the command reads.
//! 3. No output contains a password.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::arm::url;
use crate::files;
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
        for (option, path) in self.reports().filter(|(_, path)| !files::is_stream(path)) {
            let place = place(path);
            if let Some((other, _)) = taken.iter().find(|one| one.1 == place) {
                return Err(format!("{option} {}: {other} is the same file: name another", path.display()));
            }
            taken.push((option, place));
            files::writable(path)?;
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
        let Some(path) = self.json.filter(|path| !files::is_stream(path)) else { return Ok(None) };
        files::put(path, &report.to_json())?;
        Ok(Some(path))
    }

    /// Writes all outputs; the table comes last, to standard output.
    pub fn write(self, report: &Report) -> Result<(), String> {
        let file = |path: Option<&Path>, text: &dyn Fn() -> String| match path {
            Some(path) => files::put(path, &text()),
            None => Ok(()),
        };
        let plots = |folder: &PathBuf| {
            let mut pictures = report::pictures(report).into_iter();
            pictures.try_for_each(|(_, name, svg)| files::put(&folder.join(name), &svg))
        };
        // The lab tries all: a failure of one must not cost the others.
        let outcomes = [
            file(self.json, &|| report.to_json()),
            file(self.outputs.markdown.as_deref(), &|| report::markdown(report)),
            file(self.outputs.html.as_deref(), &|| report::html(report)),
            self.outputs.plots.as_ref().map_or(Ok(()), plots),
            files::print(&report::table(report, files::width())),
        ];
        outcomes.into_iter().collect()
    }
}

/// The file's absolute path without links; that of its folder if the file does not exist.
fn place(path: &Path) -> PathBuf {
    let there = fs::canonicalize(path);
    let new = || Ok(fs::canonicalize(files::folder(path))?.join(path.file_name().unwrap_or_default()));
    there.or_else(|_: io::Error| new()).unwrap_or_else(|_: io::Error| path.to_owned())
}

/// Reads a stored run.
///
/// # Errors
/// A line: the file, the fault and the remedy.
pub fn stored(path: &Path) -> Result<Report, String> {
    let text = files::text(path).map_err(|error| format!("{}: {error}", path.display()))?;
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
