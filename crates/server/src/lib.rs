//! The server room.
#![forbid(unsafe_code)]
