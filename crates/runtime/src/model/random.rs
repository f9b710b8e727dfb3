//! Randomness of the simulation's seed.

use std::io;

use super::events::{Event, digest};
use super::machine::here;

/// Fills with numbers drawn from the seed.
pub(crate) fn fill(bytes: &mut [u8]) -> io::Result<()> {
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&here().generator().next().to_le_bytes()[..piece.len()]);
    }
    here().note(Event::Draw, &[digest(bytes)]);
    Ok(())
}
