//! The write-ahead log.
//!
//! One endless sequence of bytes, cut into segment files. Space is reserved by one atomic add, filled in parallel by all
//! cores, and written in groups. What must hold:
//!
//! 1. An LSN is the position just after a record: a record is durable when `durable() >= lsn`, and a page whose LSN is
//!    `lsn` contains that record's change.
//! 2. Nothing past an unfilled reservation is ever published: `durable() <= filled() <= position()`.
//! 3. No fiber parks between reserving and filling.
//! 4. The first record of a page after a checkpoint's redo position carries the whole page (or says that the page is new).
//! 5. Stale bytes are no records: every record carries its own position and a checksum salted per data folder.
//! 6. A log write that failed is never tried again and never acknowledged: the process ends.

use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::page::PageNo;
pub use crate::page::Lsn;

/// Links a change to the transaction that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TxnLink {
    /// The transaction; 0 for changes that belong to none (structure changes): they are never undone.
    pub txn: u64,
    /// LSN of this transaction's previous record; zero for its first.
    pub prev: Lsn,
    /// Set in a compensation record (it redoes an undo and is never undone itself): where undo goes on, which is the
    /// `prev` of the record that was undone.
    pub compensation: Option<Lsn>,
}

impl TxnLink {
    /// The link of a change that belongs to no transaction.
    pub const NONE: TxnLink = TxnLink { txn: 0, prev: Lsn::ZERO, compensation: None };
}

/// A checkpoint's number (modulo 256) and the position recovery would redo from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch {
    /// Low 8 bits of the count of checkpoints begun.
    pub number: u8,
    /// A page whose LSN is at most this has not been changed since the checkpoint began.
    pub redo: Lsn,
}

/// A page that a change is logged for: the buffer pool's latched page.
pub trait LoggedPage {
    /// Its number.
    fn page_no(&self) -> PageNo;
    /// LSN of its last logged change.
    fn page_lsn(&self) -> Lsn;
    /// All its bytes, the change included.
    fn image(&self) -> &[u8];
    /// Records that the change just logged is the last one.
    fn set_page_lsn(&mut self, lsn: Lsn);
}

/// Sizes of a log.
#[derive(Clone, Copy, Debug)]
pub struct WalOptions {
    /// Cores that append.
    pub cores: usize,
    /// Bytes of a segment file: a power of two, at least 1 MiB.
    pub segment_bytes: u64,
    /// Bytes of the ring in memory: a power of two; raised to what the cores need.
    pub ring_bytes: usize,
    /// Log volume after which a checkpoint is wanted.
    pub checkpoint_bytes: u64,
}

/// The write-ahead log.
pub struct Wal {}

/// One atomic change of one or several pages, being collected.
pub struct Change<'a> {
    pages: PhantomData<&'a mut ()>,
}

impl<'a> Change<'a> {
    /// Adds a page to which the caller has already applied `op` with `payload`.
    pub fn page(&mut self, _page: &'a mut dyn LoggedPage, _op: u8, _payload: &[&[u8]]) {
        todo!()
    }
    /// Adds a page whose whole content follows from `op` and `payload` (redo starts from a zeroed page, no image is needed).
    pub fn new_page(&mut self, _page: &'a mut dyn LoggedPage, _op: u8, _payload: &[&[u8]]) {
        todo!()
    }
    /// Information for logical undo, opaque here.
    pub fn undo(&mut self, _payload: &[u8]) {
        todo!()
    }
    /// Appends the record and sets the pages' LSNs.
    pub fn commit(self, _link: TxnLink) -> Lsn {
        todo!()
    }
}

impl Wal {
    /// Makes a new log in `folder`.
    pub fn create(_folder: &Path, _salt: u32, _options: WalOptions) -> Result<Arc<Wal>, Error> {
        todo!()
    }
    /// Starts the background work.
    pub fn start(self: &Arc<Self>) {
        todo!()
    }
    /// Parks until `bytes` of payload (and whole images of the pages) can be appended. Before the first latch.
    pub fn ensure(&self, _bytes: usize) -> Result<(), Error> {
        todo!()
    }
    /// As `ensure`, for compensation records and ends of transactions: may use what is kept in reserve when the disk is full, and
    /// waits for space when that is used up too.
    pub fn ensure_reserved(&self, _bytes: usize) -> Result<(), Error> {
        todo!()
    }
    /// Begins a change in this core's buffer.
    pub fn change<'a>(&'a self) -> Change<'a> {
        todo!()
    }
    /// Appends a commit record; `committed(lsn)` runs once the record is filled and before `filled()` can pass it.
    pub fn append_commit(&self, _txn: u64, _prev: Lsn, _committed: impl FnOnce(Lsn)) -> Lsn {
        todo!()
    }
    /// Appends the record that ends a transaction which was rolled back.
    pub fn append_abort(&self, _txn: u64, _prev: Lsn) -> Lsn {
        todo!()
    }
    /// Current checkpoint epoch.
    pub fn epoch(&self) -> Epoch {
        todo!()
    }
    /// End of what has been reserved.
    pub fn position(&self) -> Lsn {
        todo!()
    }
    /// Everything before this is filled (a lower bound, never below `durable()`).
    pub fn filled(&self) -> Lsn {
        todo!()
    }
    /// Everything before this is on disk.
    pub fn durable(&self) -> Lsn {
        todo!()
    }
    /// Parks until `durable() >= lsn`. Not interruptible.
    pub fn wait_durable(&self, _lsn: Lsn) -> Result<(), Error> {
        todo!()
    }
    /// Asks for what is filled to be durable within about 10 ms.
    pub fn request_flush(&self) {
        todo!()
    }
    /// `callback(durable)` runs after each publication of `durable`, before the waiters are woken.
    pub fn on_durable(&self, _callback: impl Fn(Lsn) + Send + Sync + 'static) {
        todo!()
    }
    /// Where the oldest live transaction's first record may be (a lower bound); the log is kept from there on. Asked after a
    /// checkpoint has fixed its redo position: it must cover every transaction that may have appended before the call.
    pub fn set_floor_source(&self, _source: impl Fn() -> Lsn + Send + Sync + 'static) {
        todo!()
    }
    /// Named values of the upper rooms, at most 2000 bytes, kept in each checkpoint and handed back by recovery.
    pub fn set_checkpoint_info(&self, _source: impl Fn() -> Vec<u8> + Send + Sync + 'static) {
        todo!()
    }
}
