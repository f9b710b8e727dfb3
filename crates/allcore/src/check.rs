//! `allcore check`: verifies a stopped server's data folder, and changes nothing in it.
//!
//! What must hold:
//!
//! 1. The folder is opened to look only. Recovery's changes stay in memory and in a nameless
//!    temporary file.
//! 2. The database is shut down before the result is printed, also when the check failed.
//! 3. The exit status is 0 only if the whole folder was read and no fault was found.

use crate::folder;
use crate::logger;
use crate::settings::{LogFormat, LogLevel};
use indicatif::{ProgressBar, ProgressStyle};
use sql::database::{CheckProgress, Database, Options};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Most faults printed one by one; the rest are counted.
const SHOWN: usize = 20;

/// Checks the folder and prints the faults. An error if there are any.
pub fn run(data: &Path) -> Result<(), String> {
    logger::install(LogFormat::Text, LogLevel::Info);
    crate::must_be_data_folder(data)?;
    let fault = |fault: &dyn std::fmt::Display| format!("{}: {fault}", data.display());
    folder::keep_private(data)?;
    let options = Options { look_only: true, ..Options::default() };
    let database = Database::open(data, options).map_err(|e| fault(&e))?;
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("[{bar:30}] {pos}/{len} pages, {elapsed} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    let report = database.check(&mut |progress| match progress {
        CheckProgress::Pages(done, total) => {
            bar.set_length(total);
            bar.set_position(done);
        }
        CheckProgress::Object(name) => bar.set_message(name),
    });
    bar.finish_and_clear();
    let closed = database.shutdown().map_err(|e| fault(&e));
    let report = report.map_err(|e| fault(&e))?;
    closed?;
    let mut lines: Vec<String> = report.faults.iter().take(SHOWN).cloned().collect();
    if report.faults.len() > SHOWN {
        lines.push(format!("and {} more", report.faults.len() - SHOWN));
    }
    let (count, plural) = (report.faults.len(), if report.faults.len() == 1 { "" } else { "s" });
    if count > 0 {
        print(&lines)?;
        return Err(format!(
            "{}: {count} fault{plural} found; restore the folder from a backup",
            data.display()
        ));
    }
    lines.push(format!(
        "{}: all is well: {} pages, {} trees, {} rows, {} index entries, {} chunks of long values",
        data.display(),
        report.pages,
        report.trees,
        report.rows,
        report.entries,
        report.chunks
    ));
    print(&lines)
}

/// Prints lines to standard output. Nobody misses them if its reader has gone.
#[expect(clippy::disallowed_methods, reason = "the result of `allcore check` goes to standard output")]
fn print(lines: &[String]) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    let written = lines.iter().try_for_each(|line| writeln!(output, "{line}")).and_then(|()| output.flush());
    match written {
        Err(fault) if fault.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {fault}"))
        }
        _ => Ok(()),
    }
}
