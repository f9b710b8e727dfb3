//! Arrays in their packed form, which is also what rows hold.

/// A packed array.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a>(pub &'a [u8]);

/// Builds a packed array element by element.
#[derive(Debug)]
pub struct ArrayBuilder {
    /// The packed bytes so far.
    pub bytes: Vec<u8>,
}
