//! Spools: bytes of one statement that outgrow its memory, in temporary pages of the store.
//!
//! A spool belongs to no transaction and leaves no trace in the log. The executor sorts and keeps
//! rows in spools, and takes them from here so that it needs no other interface to storage. A
//! reader of a spool keeps [`PAGE_SIZE`] bytes in memory.

pub use storage::page::PAGE_SIZE;
pub use storage::spool::{Spool, SpoolReader};
