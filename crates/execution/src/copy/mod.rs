//! COPY: rows out and in, as text, CSV or PostgreSQL's binary format.

mod fields;
mod read;
mod write;

pub use read::copy_in;
pub use write::copy_out;

/// The first bytes of a binary copy; flags and extension length follow.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
