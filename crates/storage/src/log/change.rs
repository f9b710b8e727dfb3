//! One atomic change of one or several pages: collected while the pages are latched, appended as
//! one record.

use std::ops::Range;

use super::record::{self, Head, Kind, MAX_PAGES, PartForm};
use super::{Epoch, TxnLink, Wal};
use crate::page::{Lsn, PageNo};

/// A page whose change is logged: the buffer pool's latched page.
pub trait LoggedPage {
    /// Its number.
    fn page_no(&self) -> PageNo;
    /// The LSN of its last logged change.
    fn page_lsn(&self) -> Lsn;
    /// All its bytes, the change included.
    fn image(&self) -> &[u8];
    /// The bytes of the image that mean nothing: a page image leaves them out, and redo makes them
    /// zeros.
    fn hole(&self) -> Range<usize> {
        0..0
    }
    /// Sets the LSN of the page's last change to that of the change just logged.
    fn set_page_lsn(&mut self, lsn: Lsn);
}

/// One atomic change, being collected in this core's buffer. The caller has ensured the room
/// ([`Wal::ensure`]), holds the pages' latches, and does not park until [`Change::commit`].
pub struct Change<'a> {
    wal: &'a Wal,
    buffer: Vec<u8>,
    epoch: Epoch,
    pages: [Option<&'a mut dyn LoggedPage>; MAX_PAGES],
    count: usize,
    /// Where the undo information begins in the buffer, if there is any.
    undo_start: Option<usize>,
}

impl Wal {
    /// Begins a change in this core's buffer.
    #[inline]
    pub fn change(&self) -> Change<'_> {
        let mut buffer = self.take_buffer();
        record::begin(&mut buffer);
        Change {
            wal: self,
            buffer,
            epoch: self.epoch(),
            pages: [const { None }; MAX_PAGES],
            count: 0,
            undo_start: None,
        }
    }
}

impl<'a> Change<'a> {
    /// Adds a page to which the caller has already applied `op` with `payload`, whose pieces follow
    /// one another.
    pub fn page(&mut self, page: &'a mut dyn LoggedPage, op: u8, payload: &[&[u8]]) {
        // The first change since the checkpoint began: the page on disk may be torn by then, so
        // redo starts from an image.
        if page.page_lsn() <= self.epoch.redo {
            record::add_image(&mut self.buffer, page.page_no(), op, page.image(), page.hole());
        } else {
            record::add_part(&mut self.buffer, page.page_no(), op, PartForm::Op, payload);
        }
        self.keep(page);
    }

    /// Adds a page whose whole content follows from `op` and `payload`. Redo starts from a zeroed
    /// page, so no image is needed.
    pub(crate) fn new_page(&mut self, page: &'a mut dyn LoggedPage, op: u8, payload: &[&[u8]]) {
        record::add_part(&mut self.buffer, page.page_no(), op, PartForm::New, payload);
        self.keep(page);
    }

    /// Adds information for logical undo, opaque here. Comes after the pages.
    pub fn undo(&mut self, payload: &[u8]) {
        self.undo_start.get_or_insert(self.buffer.len());
        self.buffer.extend_from_slice(payload);
    }

    /// Appends the record and sets the pages' LSNs.
    pub fn commit(mut self, link: TxnLink) -> Lsn {
        if let Some(undo_next) = link.compensation {
            // A compensation is never undone: the LSN at which undo goes on stands in place of undo
            // information.
            self.buffer.truncate(self.undo_start.unwrap_or(self.buffer.len()));
            self.undo_start = None;
            self.undo(&undo_next.0.to_le_bytes());
        }
        let undo_length = self.undo_start.map_or(0, |start| self.buffer.len() - start);
        let head =
            Head { kind: Kind::Change, pages: self.count as u8, undo_length: undo_length as u32, link };
        let wal = self.wal;
        let lsn = loop {
            let sealed = record::seal(&mut self.buffer, head, wal.salt);
            match wal.append(&mut self.buffer, &sealed, Kind::Change, Some(self.epoch.number), |_| {}) {
                Ok(lsn) => break lsn,
                Err(epoch) => self.rebuild(epoch, undo_length),
            }
        };
        for page in self.pages[..self.count].iter_mut().flatten() {
            page.set_page_lsn(lsn);
        }
        lsn
    }

    fn keep(&mut self, page: &'a mut dyn LoggedPage) {
        assert!(self.count < MAX_PAGES, "a change covers at most {MAX_PAGES} pages");
        debug_assert!(self.undo_start.is_none(), "pages come before the undo information");
        debug_assert!(!page.page_no().is_temporary(), "temporary pages are not logged");
        self.pages[self.count] = Some(page);
        self.count += 1;
    }

    /// Builds the same change with every page as an image, because a checkpoint began since the
    /// record was built. That is more than needed if another core changed a page since that
    /// checkpoint, and still correct.
    #[cold]
    fn rebuild(&mut self, epoch: Epoch, undo_length: usize) {
        let undo = self.undo_start.map(|start| self.buffer[start..start + undo_length].to_vec());
        self.epoch = epoch;
        record::begin(&mut self.buffer);
        for page in self.pages[..self.count].iter().flatten() {
            record::add_image(&mut self.buffer, page.page_no(), 0, page.image(), page.hole());
        }
        self.undo_start = None;
        if let Some(undo) = undo {
            self.undo(&undo);
        }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.wal.put_buffer(std::mem::take(&mut self.buffer));
    }
}
