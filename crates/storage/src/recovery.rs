//! Recovery: from whatever a crash left to exactly what was promised, or a clear refusal.
//!
//! 1. **Analysis** ([`Recovery::analyse`]) reads the control file, then the log from its floor to
//!    the first gap. It finds the log's end, the transactions that neither committed nor were
//!    rolled back (losers), and the highest transaction number.
//! 2. The log goes on at that end ([`Recovery::resume`]). Bytes behind it are cleared away.
//! 3. **Redo** ([`crew`], by all cores) repeats history from the redo position: each change that
//!    its page does not contain yet, losers' changes too. An image or a new page replaces whatever
//!    is on disk, so torn pages heal.
//! 4. **Undo** ([`Recovery::undo`]) takes losers' changes back, newest first over all losers,
//!    through the transaction room's ordinary logged changes. Each is a compensation record that
//!    names where undo goes on, so a crash in the middle repeats none of it. Each loser ends with
//!    an abort record.
//! 5. The caller takes a checkpoint, so that the next start does not repeat this.
//!
//! A start finds and does (each row has a test in `recovery/tests.rs`):
//!
//! | found | then |
//! |---|---|
//! | no control file, or none of its copies valid | refused: `Missing` or `Damaged` |
//! | one copy of the control file damaged | the other counts: its log and pages are still there |
//! | a control file of another version | refused: `Version` |
//! | no log folder, or no segment that holds the floor | refused: `Missing` |
//! | a segment that is too long | refused: `Damaged` |
//! | a segment that was cut short, or is missing between others | as if zeros followed |
//! | the log ends before what was known to be durable (`log::damage`) | refused: `LogDamaged` |
//! | the same, and its end is to be discarded from exactly there | recovered up to there, the rest kept in a folder |
//! | the log ends anywhere after that: torn, garbage, stale records, zeros | recovered up to there |
//! | records beyond the gap | cleared, so that they are never taken for records later |
//! | file `pages` missing, or shorter than at the last checkpoint | refused: `Missing` or `Damaged` |
//! | file `pages` of an earlier checkpoint, a later one or another folder | refused: `Mixed` |
//! | a page torn or damaged, and the log holds its image | made from the image |
//! | a page damaged, and redo needs its content | refused: `Corrupt` |
//! | a page newer than the log's end (log was lost) | refused if redo needs it: `Corrupt`; else that statement fails |
//! | a page damaged that redo does not need | the statement that reads it fails |
//! | an operation that redo does not know, or that does not fit its page | refused: `Corrupt` |
//! | an I/O error | refused: `Io`; a second try writes the same again |

pub(crate) mod crew;
mod progress;

use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime::fiber;
use runtime::hash::HashMap;

use crate::Error;
use crate::control::{Control, ControlFile};
use crate::datafile::{DataFile, Opening};
use crate::error::{FormatProblem, IoContext, LogDamage};
use crate::format::LOG_FOLDER;
use crate::log::damage;
use crate::log::{self, Kind, LogReader, Part, Wal, WalOptions};
use crate::page::{self, Damage, Lsn, PAGE_SIZE, PageNo};
use crate::pool::{Miss, Pool, yield_for_latch};
use progress::Progress;

/// The data file, whose length is checked against the control file.
const PAGES_FILE: &str = "pages";

/// Logical undo of losers; the transaction room implements it.
pub trait UndoHandler {
    /// Undoes the change of `txn` whose record ends at `lsn` and carried `undo`, through ordinary
    /// tree changes. It logs them with `TxnLink { txn, prev: last, compensation: Some(prev) }`.
    /// Returns the LSN of the last record that it logged, or `last` when it logged none.
    fn undo(&mut self, txn: u64, lsn: Lsn, undo: &[u8], prev: Lsn, last: Lsn) -> Result<Lsn, Error>;
}

/// Applies one op to a page. The text in `Err` says what does not fit. The store dispatches ops.
pub(crate) type RedoOp = fn(op: u8, payload: &[u8], page: &mut [u8]) -> Result<(), &'static str>;

/// The pages of a store, as redo needs them.
pub(crate) trait RedoPages {
    /// Calls `change` with the page's bytes if its LSN is below `lsn`, and sets its LSN to `lsn`.
    /// With `replaced` the content does not matter: a page that cannot be read comes as zeros.
    fn redo(
        &mut self,
        page_no: PageNo,
        replaced: bool,
        lsn: Lsn,
        change: &mut dyn FnMut(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error>;
}

/// A start in progress: the findings of the analysis.
#[derive(Debug)]
pub(crate) struct Recovery {
    folder: PathBuf,
    control: Control,
    end: Lsn,
    highest_txn: u64,
    /// Transactions that have not ended, with the LSN of their last record.
    losers: Vec<(u64, Lsn)>,
    /// Damage at `end` that the start accepts, as the operator asked.
    discards: Option<Box<LogDamage>>,
}

/// How a start treats a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Manner {
    /// The start changes nothing in the folder.
    pub look_only: bool,
    /// The position of damage in the log; the start discards the log from there on.
    pub discard_log_after: Option<Lsn>,
}

impl Recovery {
    /// Reads the control file and the log of the data folder. Changes nothing.
    pub(crate) fn analyse(folder: &Path, manner: Manner) -> Result<(Recovery, ControlFile), Error> {
        let (control_file, control) = ControlFile::open_as(folder, manner.look_only)?;
        check_pages_file(folder, &control)?;
        let mut reader = open_log(folder, &control, control.floor)?;
        let floor_segment = control.floor.0 / control.segment_bytes;
        if reader.first_segment().is_none_or(|first| first > floor_segment) {
            return Err(log::missing(floor_segment));
        }
        let mut last_of: HashMap<u64, Lsn> = HashMap::default();
        let (mut highest_txn, mut last_commit) = (0, None);
        let mut progress = Progress::new("recovery reads the log");
        while let Some(record) = reader.next_record()? {
            let txn = record.link().txn;
            highest_txn = highest_txn.max(txn);
            match record.kind() {
                Kind::Change if txn != 0 => {
                    last_of.insert(txn, record.lsn());
                }
                kind @ (Kind::Commit | Kind::Abort) => {
                    last_of.remove(&txn);
                    last_commit = if kind == Kind::Commit { Some(record.lsn()) } else { last_commit };
                }
                Kind::Change | Kind::Checkpoint | Kind::Void => {}
            }
            progress.at(record.lsn().0 - control.floor.0, None);
            fiber::safe_point();
        }
        let end = reader.position();
        let damage = damage::judge(folder, &mut reader, &control, last_commit)?.map(Box::new);
        let discards = accept(damage, manner.discard_log_after)?;
        // Pages may hold numbers of transactions whose records are discarded.
        let highest_txn = discards.as_ref().map_or(highest_txn, |lost| highest_txn.max(lost.highest_txn));
        let losers = last_of.into_iter().collect();
        let recovery = Recovery { folder: folder.to_owned(), control, end, highest_txn, losers, discards };
        Ok((recovery, control_file))
    }

    /// The content of the control file.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The highest transaction number in the part of the log that was read. The checkpoint's info
    /// has the numbers in use before that.
    pub fn highest_txn(&self) -> u64 {
        self.highest_txn
    }

    /// The number of transactions to undo.
    pub fn losers(&self) -> usize {
        self.losers.len()
    }

    /// The log, continued at its end.
    pub fn resume(&self, control_file: ControlFile, options: WalOptions) -> Result<Arc<Wal>, Error> {
        if let Some(damage) = &self.discards {
            let kept = damage::keep_copy(&self.folder, self.control.segment_bytes, self.end)?;
            ::log::warn!("{damage}");
            ::log::warn!(
                "the log after {} is discarded as asked; a copy of its files is in {}",
                self.end,
                kept.display()
            );
        }
        let before = self.discards.as_ref().map(|damage| damage.durable);
        Wal::resume(&self.folder, control_file, &self.control, (self.end, before), options)
    }

    /// As [`Recovery::resume`] for looking only: the log continues in memory.
    pub(crate) fn rehearse(&self, control_file: ControlFile, options: WalOptions) -> Result<Arc<Wal>, Error> {
        Wal::rehearse(&self.folder, control_file, &self.control, self.end, options)
    }

    /// Keeps pages that are newer than a discarded end of the log. Called after [`Recovery::redo`].
    ///
    /// The pages stay as they are, except for their LSNs, which no longer mean anything. The
    /// server's log has their number. The new end becomes the log's only when these pages are on
    /// disk. A start that is killed before must discard again, and begins anew.
    pub(crate) fn renounce(&self, pool: &Pool, wal: &Wal) -> Result<(), Error> {
        if self.discards.is_none() {
            return Ok(());
        }
        let (mut bytes, mut newer) = (runtime::file::AlignedBuf::new(PAGE_SIZE), 0);
        for number in 0..pool.file(PageNo(0)).pages() {
            let page_no = PageNo(number);
            fiber::safe_point();
            // A statement that needs a damaged page finds it.
            let read = pool.file(page_no).read(page_no, &mut bytes);
            if read.is_err() || page::verify(&bytes, page_no).is_err() || page::lsn(&bytes) <= self.end {
                continue;
            }
            let mut page = pool.pin(page_no)?.lock_yielding();
            if page.lsn() > self.end {
                page.set_lsn(self.end);
                newer += 1;
            }
        }
        if newer > 0 {
            ::log::warn!(
                "{newer} pages hold changes of the discarded log, whole transactions or parts of them: \
                 run 'allcore check', and compare what is there with what should be"
            );
        }
        pool.flush_before_paced(Lsn(wal.position().0 + 1), &mut |_, _| {})?;
        pool.file(PageNo(0)).sync()?;
        runtime::stop::point("recovery.renounced");
        wal.settle_end()
    }

    /// Passes each part of each change from the redo position to the log's end to `apply`, in the
    /// log's order, with its record's LSN. [`crew`] applies them.
    pub(crate) fn redo(
        &self,
        apply: &mut dyn FnMut(Lsn, Part<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut reader = open_log(&self.folder, &self.control, self.control.redo)?;
        let mut progress = Progress::new("recovery repeats the log");
        while reader.position() < self.end {
            let at = reader.position();
            let Some(record) = reader.next_record()? else {
                return Err(Error::Format(FormatProblem::Unfit(
                    "the log changed while it was read".to_owned(),
                )));
            };
            debug_assert_eq!(record.position(), at);
            runtime::stop::point("recovery.redo");
            for part in record.parts() {
                apply(record.lsn(), part)?;
            }
            progress.at(record.lsn().0 - self.control.redo.0, Some(self.end.0 - self.control.redo.0));
            fiber::safe_point();
        }
        Ok(())
    }

    /// Undoes the losers. The caller may take a checkpoint afterwards.
    pub fn undo(&self, wal: &Wal, handler: &mut dyn UndoHandler) -> Result<(), Error> {
        let mut reader = open_log(&self.folder, &self.control, self.control.floor)?;
        let mut next: BinaryHeap<Pending> =
            self.losers.iter().map(|&(txn, lsn)| Pending { lsn, txn, last: lsn }).collect();
        while let Some(Pending { lsn, txn, last }) = next.pop() {
            if lsn == Lsn::ZERO {
                wal.ensure_reserved(0)?;
                wal.append_abort(txn, last);
                continue;
            }
            runtime::stop::point("recovery.undo");
            let missing = Error::Format(FormatProblem::Unfit(
                "a transaction's record is missing in the log".to_owned(),
            ));
            let record =
                reader.record_ending_at(lsn)?.filter(|record| record.link().txn == txn).ok_or(missing)?;
            let link = record.link();
            let (lsn, last) = match link.compensation {
                Some(undo_next) => (undo_next, last),
                None if record.undo().is_empty() => (link.prev, last),
                None => (link.prev, handler.undo(txn, lsn, record.undo(), link.prev, last)?),
            };
            next.push(Pending { lsn, txn, last });
        }
        // Redone pages are dirty from the log's end on. With a record there, the next checkpoint's
        // redo position is past it, and these pages are among those it writes. That checkpoint
        // makes room on a full disk, so its record waits for no more than it needs itself.
        wal.ensure_checkpoint()?;
        wal.append_void();
        wal.wait_durable(wal.position())
    }
}

/// The next change of a loser to undo. The newest comes first: ordered by the LSN.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    lsn: Lsn,
    txn: u64,
    /// The transaction's last record, compensations included.
    last: Lsn,
}

fn redo_part(pages: &mut dyn RedoPages, op: RedoOp, lsn: Lsn, part: Part<'_>) -> Result<(), Error> {
    pages.redo(part.page, part.replaces_page(), lsn, &mut |bytes| {
        if part.restore(bytes) {
            return Ok(());
        }
        if part.replaces_page() {
            bytes.fill(0);
        }
        op(part.op, part.payload, bytes).map_err(|what| Error::Corrupt { page: part.page, what })
    })
}

/// The damage that the start accepts, if the operator asks for exactly that.
fn accept(damage: Option<Box<LogDamage>>, asked: Option<Lsn>) -> Result<Option<Box<LogDamage>>, Error> {
    match (damage, asked) {
        (None, None) => Ok(None),
        (Some(damage), None) => Err(Error::Format(FormatProblem::LogDamaged(damage))),
        (Some(damage), Some(asked)) if damage.at == asked && !damage.needed => Ok(Some(damage)),
        (damage, Some(asked)) => Err(Error::Format(FormatProblem::Discard { asked, damage })),
    }
}

/// Redo through the buffer pool.
struct PoolPages<'a> {
    pool: &'a Pool,
    /// The highest LSN that a page may have.
    end: Lsn,
    /// Whether the log's end was discarded, so that pages may be newer all the same.
    discards: bool,
}

impl RedoPages for PoolPages<'_> {
    fn redo(
        &mut self,
        page_no: PageNo,
        replaced: bool,
        lsn: Lsn,
        change: &mut dyn FnMut(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut page = loop {
            match self.pool.get(page_no).map(|view| view.lock()) {
                Ok(Ok(page)) => break page,
                Ok(Err(_)) => yield_for_latch(),
                Err(Miss::Absent) if replaced => self.pool.load_or_zero(page_no)?,
                Err(miss) => self.pool.resolve(page_no, miss)?,
            }
        };
        if page.lsn() > self.end && !self.discards {
            return Err(Error::Corrupt { page: page_no, what: Damage::Newer.what() });
        }
        // The first change after the checkpoint replaces a page that is newer than the rest of the
        // log.
        if page.lsn() < lsn || page.lsn() > self.end && replaced {
            change(page.bytes_mut())?;
            page.set_lsn(lsn);
        }
        Ok(())
    }
}

fn open_log(folder: &Path, control: &Control, start: Lsn) -> Result<LogReader, Error> {
    let folder = folder.join(LOG_FOLDER);
    if !runtime::file::exists(&folder).during("looking for the log")? {
        return Err(Error::Format(FormatProblem::Missing("log".to_owned())));
    }
    LogReader::new(&folder, control.segment_bytes, control.salt, start)
}

fn check_pages_file(folder: &Path, control: &Control) -> Result<(), Error> {
    let path = folder.join(PAGES_FILE);
    if !runtime::file::exists(&path).during("looking for the data file")? {
        return Err(Error::Format(FormatProblem::Missing(PAGES_FILE.to_owned())));
    }
    let options = runtime::file::OpenOptions { read_only: true, ..Default::default() };
    let file = runtime::file::File::open(&path, options).during("opening the data file")?;
    let bytes = file.len().during("measuring the data file")?;
    drop(file);
    if bytes < u64::from(control.pages) * PAGE_SIZE as u64 {
        let what = format!("file {PAGES_FILE} is shorter than at the last checkpoint");
        return Err(Error::Format(FormatProblem::Unfit(what)));
    }
    if control.pages == 0 {
        return Ok(());
    }
    // A damaged page 0 is found when it is needed.
    let Some(stamp) = DataFile::open(&path, Opening::ReadOnly)?.read_stamp()? else { return Ok(()) };
    let mixed = if stamp.salt != control.salt {
        "file pages belongs to another data folder"
    } else if stamp.generation < control.generation {
        "file pages is an older copy than the control file and the log go with"
    } else if stamp.generation > control.generation + 1 {
        "the control file is an older copy than pages goes with"
    } else {
        return Ok(());
    };
    Err(Error::Format(FormatProblem::Mixed(mixed)))
}

#[cfg(test)]
mod tests;
