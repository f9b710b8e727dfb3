//! The sql room.
#![forbid(unsafe_code)]
