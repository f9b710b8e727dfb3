//! Numeric.

/// A numeric value in its packed form, as rows hold it: one byte of kind (0 positive or zero, 1 negative, 2 NaN,
/// 3 infinity, 4 minus infinity), two of display scale (little endian), then the magnitude of `value * 10^scale` as
/// little endian bytes without leading zeros (none for zero).
#[derive(Clone, Copy, Debug)]
pub struct NumericRef<'a>(pub &'a [u8]);
