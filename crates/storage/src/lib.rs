//! The storage room.
