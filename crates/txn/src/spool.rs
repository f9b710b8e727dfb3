//! Spools: bytes of one statement that outgrow its memory, in temporary pages of the store.
//!
//! A spool belongs to no transaction and leaves no trace in the log. The executor sorts and keeps
//! rows in spools, and takes them from here so that it needs no other interface to storage. A
//! reader of a spool keeps [`PAGE_SIZE`] bytes in memory.

use storage::Error;

use crate::folder::Folder;

pub use storage::page::PAGE_SIZE;
pub use storage::spool::{Spool, SpoolReader};

/// [`Spool::append`] with pages of this folder.
#[inline]
pub fn append(spool: &mut Spool, folder: &Folder, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
    spool.append(&folder.0, write)
}

/// [`Spool::seal`] with pages of this folder.
pub fn seal(spool: &mut Spool, folder: &Folder) -> Result<(), Error> {
    spool.seal(&folder.0)
}
