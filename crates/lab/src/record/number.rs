//! Numbers that JSON lacks: it stores NaN and infinities as null, which reads back as NaN.

use serde::{Deserialize, Deserializer};

/// Reads a number or a null.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}
