//! Row `file-lock`: threads read pages of a file that is in the kernel's cache.
//!
//! The exclusive lock leaves all processors but one idle. Where other programs take them, the row
//! turns round: the arms without waiters get a smaller share of each processor. On 2 cores with 64
//! threads, shared against exclusive was 2.4 without such programs, and 0.5 beside compilers.

use std::fs::File;
use std::os::unix::fs::FileExt;

use calls::reads::{BufferedReads, ExclusiveReads, PAGE, Reads, SharedReads};
use runtime::file::{self, AlignedBuf};
use sync::atomic::{AtomicBool, Ordering};
use variants::caller::Caller;

use super::relation_size::file;
use super::{Arm, COUNTED, Part, Row, Started, UNCOUNTED, next_random};
use crate::round::{Subject, Worker};

/// Pages of the file.
const PAGES: u64 = 512;

/// The row.
pub(super) const ROW: Row = Row {
    id: "file-lock",
    report: "B14",
    about: "reads of a file: under its lock taken exclusively, against shared, against none. Beside other programs the \
            row may turn round, as they take the processors that waiters leave",
    operation: "read 8 KiB at random of a file in memory",
    needs: None,
    code: "crates/calls/src/reads",
    arms: &[
        Arm {
            name: "exclusive",
            part: Part::Stock,
            start: |threads| pages(ExclusiveReads::new(filled(file()?)?, threads), COUNTED),
        },
        Arm {
            name: "shared",
            part: Part::Published,
            start: |threads| pages(SharedReads::new(filled(file()?)?, threads), COUNTED),
        },
        Arm {
            name: "no lock",
            part: Part::Step,
            start: |_| pages(BufferedReads::new(filled(file()?)?), UNCOUNTED),
        },
        Arm { name: "runtime::File", part: Part::Allcore, start: |_| pages(Own::new(false)?, UNCOUNTED) },
    ],
};

/// Fills a file with pages whose words are the page's number.
pub(super) fn filled(file: File) -> Result<File, String> {
    for page in 0..PAGES {
        let bytes = page.to_le_bytes().repeat(PAGE / 8);
        file.write_all_at(&bytes, page * PAGE as u64).map_err(|error| format!("no file: {error}"))?;
    }
    // A direct read would wait for the pages to be written.
    file.sync_data().map_err(|error| format!("no file: {error}"))?;
    Ok(file)
}

/// The engine's file: positioned reads, buffered or direct.
#[derive(Debug)]
pub(super) struct Own(file::File);

impl Own {
    /// Such a file with its pages.
    pub fn new(direct: bool) -> Result<Self, String> {
        let named = tempfile::NamedTempFile::new().map_err(|error| format!("no temporary file: {error}"))?;
        let clone = named.as_file().try_clone().map_err(|error| format!("no file: {error}"))?;
        filled(clone)?;
        let how = file::OpenOptions { direct, ..Default::default() };
        let opened = file::File::open(named.path(), how).map_err(|error| format!("no file: {error}"))?;
        Ok(Self(opened))
    }
}

impl Reads for Own {
    fn read(&self, _: &mut Caller, page: u64, to: &mut [u8]) {
        self.0.read_at(to, page * PAGE as u64).expect("a page of the file");
    }
}

pub(super) fn pages(reads: impl Reads + 'static, counts_retries: bool) -> Started {
    Ok(Box::new(Pages { reads, is_wrong: AtomicBool::new(false), counts_retries }))
}

#[derive(Debug)]
struct Pages<R> {
    reads: R,
    is_wrong: AtomicBool,
    counts_retries: bool,
}

impl<R: Reads> Subject for Pages<R> {
    fn work(&self, worker: &mut Worker<'_>) {
        let mut bytes = AlignedBuf::new(PAGE);
        let mut random = 1 + worker.number() as u64;
        let mut is_wrong = false;
        worker.repeat(|me| {
            random = next_random(random);
            let page = random % PAGES;
            self.reads.read(me, page, &mut bytes);
            let word = page.to_le_bytes();
            is_wrong |= bytes[..8] != word || bytes[PAGE - 8..PAGE] != word;
            // The next read must bring it again.
            bytes[..8].fill(0xff);
            bytes[PAGE - 8..PAGE].fill(0xff);
        });
        // Relaxed: read after the threads' end.
        self.is_wrong.fetch_or(is_wrong, Ordering::Relaxed);
    }

    fn counts_retries(&self) -> bool {
        self.counts_retries
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err("a read gave another page than the one asked for".into());
        }
        Ok(())
    }

    fn shoots_down(&self) -> bool {
        true
    }
}
