//! A value of a sample, as statistics keep it.

use serde::{Deserialize, Serialize};

/// A value of the sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledValue {
    /// Its key.
    pub key: Box<[u8]>,
    /// Its text.
    pub text: Box<str>,
}
