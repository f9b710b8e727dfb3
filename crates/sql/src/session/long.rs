//! Long texts. The stages that read and copy a text have no safe point. What must hold: for a text
//! longer than [`LONG_TEXT`] they run beside the core.

use std::borrow::Cow;
use std::sync::Arc;

use query::normalize::{Literal, Normalized};
use values::error::SqlError;
use values::work;

/// A longer text would hold the core too long: the stages read about 1 GB a second, so this length
/// takes 0.26 ms a stage.
pub(super) const LONG_TEXT: usize = 256 << 10;

/// Reads a long text beside the core. Returns whether it is one statement with a template.
pub(super) fn read_beside(read: &mut Normalized, text: &str) -> Result<bool, SqlError> {
    let (mut beside, text) = (std::mem::take(read), work::owned_text(text)?);
    let done = runtime::aside::run_given(text.len(), move || {
        let one = beside.read(&text) && !beside.several;
        (beside, one)
    });
    let (beside, one) = done.map_err(SqlError::stopped)?;
    *read = beside;
    Ok(one)
}

/// A text that plans share. A long one is copied in pieces.
pub(super) fn shared(text: &str) -> Result<Arc<str>, SqlError> {
    if text.len() <= LONG_TEXT {
        return Ok(text.into());
    }
    let text = work::owned_text(text)?;
    runtime::aside::run_given(text.len(), move || text.into()).map_err(SqlError::stopped)
}

/// [`Literal::value`] of a long literal, found beside the core.
pub(super) fn long_value(literal: &Literal, whole: &str) -> Result<Option<String>, SqlError> {
    let text = work::owned_text(literal.text(whole))?;
    let alone = Literal { start: 0, end: literal.end - literal.start, ..*literal };
    runtime::aside::run_given(text.len(), move || alone.value(&text).map(Cow::into_owned))
        .map_err(SqlError::stopped)
}
