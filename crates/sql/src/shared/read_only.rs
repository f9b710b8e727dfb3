//! Settings that say what the running server is, under PostgreSQL's names: set at its start and by
//! nobody after. A name is here only where the thing itself is, with its true value; what whoever
//! opened the folder does not say is not known.

use std::path::Path;

use runtime::memory::RegionKind;
use txn::Store;
use txn::folder::PAGE_SIZE;

use crate::units::show_memory;

/// Names and values, as SHOW gives them.
pub(crate) type ReadOnlySettings = Vec<(&'static str, String)>;

/// What can be said of an open folder for so many sessions.
pub(crate) fn of(store: &Store, path: &Path, max_connections: usize) -> ReadOnlySettings {
    let on = || "on".to_owned();
    let kilobytes = |bytes: u64| show_memory(bytes >> 10);
    let pool = store.pool().frames() * PAGE_SIZE;
    let log = store.wal().options();
    let huge = store.pool().memory() == RegionKind::Huge;
    vec![
        ("block_size", PAGE_SIZE.to_string()),
        // The path as it was named, where it has no other: it is open.
        ("data_directory", std::path::absolute(path).unwrap_or(path.to_owned()).display().to_string()),
        // Each page has one, checked when it is read.
        ("data_checksums", on()),
        // What is acknowledged was written and made durable; `synchronous_commit` alone says
        // otherwise.
        ("fsync", on()),
        ("full_page_writes", on()),
        // Taken where they are granted.
        ("huge_pages", "try".to_owned()),
        ("huge_pages_status", if huge { "on" } else { "off" }.to_owned()),
        ("max_connections", max_connections.to_string()),
        ("max_wal_size", kilobytes(log.checkpoint_bytes)),
        ("shared_buffers", kilobytes(pool as u64)),
        ("track_activities", on()),
        ("track_activity_query_size", format!("{}kB", sync::Caption::MOST >> 10)),
        ("wal_segment_size", kilobytes(log.segment_bytes)),
    ]
}
