//! The version of the data folder, and names in it that several modules need. docs/formats.md
//! describes the files.

/// Content of the file `ALLCORE`. The number changes with any format on disk.
pub(crate) const FORMAT: &str = "allcore 4\n";
/// The log's folder in the data folder.
pub(crate) const LOG_FOLDER: &str = "log";

/// Name of a segment file in the log's folder.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{number:016x}")
}
