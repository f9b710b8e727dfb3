//! COPY: rows out and in, as text, CSV or PostgreSQL's binary format.

mod fields;
mod read;
mod write;

use fields::{Fields, Shown};
use query::plan::CopyFormat;
pub use read::copy_in;
use values::error::SqlError;
pub use write::copy_out;

/// The first bytes of a binary copy; flags and extension length follow.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// The fields of one line as COPY FROM reads them in its text and CSV formats; `None` is NULL. The
/// line is cut no further once it has more than `most` fields. For the readers of hostile bytes.
///
/// # Errors
/// Those of COPY FROM: a quote that nothing closes.
pub fn cut_line(line: &[u8], format: &CopyFormat, most: usize) -> Result<Vec<Option<Vec<u8>>>, SqlError> {
    let mut fields = Fields::default();
    fields.cut(line, format, most)?;
    let field = |at| match fields.get(at) {
        Shown::Null => None,
        Shown::Line(start, end) => Some(line[start..end].to_vec()),
        Shown::Unescaped(bytes) => Some(bytes.to_vec()),
    };
    Ok((0..fields.len()).map(field).collect())
}
