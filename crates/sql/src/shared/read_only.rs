//! Read-only settings: they describe the running server under PostgreSQL's names. The start sets
//! them; no session does. What must hold: a setting is here only if the server has what it
//! describes, and with its true value. Settings that the embedding program did not pass are absent.

use std::path::Path;

use runtime::memory::{HugePages, RegionKind};
use txn::Folder;
use txn::folder::PAGE_SIZE;

use crate::units::show_memory;

/// Names and values, as SHOW gives them.
pub(crate) type ReadOnlySettings = Vec<(&'static str, String)>;

/// The settings that an open folder with `max_connections` sessions has by itself.
pub(crate) fn of(
    folder: &Folder,
    path: &Path,
    max_connections: usize,
    huge_pages: HugePages,
) -> ReadOnlySettings {
    let on = || "on".to_owned();
    let kilobytes = |bytes: u64| show_memory(bytes >> 10);
    let (pool, memory) = folder.pool();
    let (segment, between_checkpoints) = folder.log_bytes();
    let asked = match huge_pages {
        HugePages::Try => "try",
        HugePages::On => "on",
        HugePages::Off => "off",
    };
    let granted = match memory {
        RegionKind::Gigantic | RegionKind::Huge => "on",
        // The kernel decides about each page as it is touched, and may change its mind.
        RegionKind::Transparent => "unknown",
        RegionKind::Ordinary => "off",
    };
    vec![
        ("block_size", PAGE_SIZE.to_string()),
        // If the absolute path cannot be computed, the path as the caller gave it. The folder is
        // open under it.
        ("data_directory", std::path::absolute(path).unwrap_or(path.to_owned()).display().to_string()),
        // Each page has a checksum, and each read checks it.
        ("data_checksums", on()),
        // The log makes a commit durable before the client learns of it, unless
        // `synchronous_commit` is off.
        ("fsync", on()),
        ("full_page_writes", on()),
        ("buffer_memory", memory.name().to_owned()),
        ("huge_pages", asked.to_owned()),
        ("huge_pages_status", granted.to_owned()),
        ("max_connections", max_connections.to_string()),
        ("max_wal_size", kilobytes(between_checkpoints)),
        ("shared_buffers", kilobytes(pool as u64)),
        ("track_activities", on()),
        ("track_activity_query_size", format!("{}kB", sync::Caption::MOST >> 10)),
        ("wal_segment_size", kilobytes(segment)),
    ]
}
