//! The txn room.
#![forbid(unsafe_code)]
