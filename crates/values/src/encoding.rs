//! The encoding of text, UTF-8: checks of bytes from clients, files and stored values.
//!
//! Each check has a safe point after every piece of a long text.

use crate::error::{SqlError, SqlState};
use crate::work;

/// The bytes as text; 22021 when they are not UTF-8.
pub fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    runtime::work::checked_utf8(bytes).map_err(SqlError::stopped)?.map_err(|problem| {
        let at = problem.valid_up_to();
        let shown: Vec<String> = bytes[at..].iter().take(4).map(|byte| format!("0x{byte:02x}")).collect();
        SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
        )
    })
}

/// The bytes as text a value may hold: UTF-8 without zeros, else 22021.
pub fn valid_text(bytes: &[u8]) -> Result<&str, SqlError> {
    let text = utf8(bytes)?;
    if work::contains(text.as_bytes(), 0)? {
        return Err(SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            "invalid byte sequence for encoding \"UTF8\": 0x00",
        ));
    }
    Ok(text)
}
