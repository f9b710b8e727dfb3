//! The space map.
