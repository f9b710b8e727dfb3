//! The allcore room.
#![forbid(unsafe_code)]
fn main() {}
