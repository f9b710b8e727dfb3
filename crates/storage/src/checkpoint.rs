//! Checkpoints: they bound the log that a recovery needs and that the disk keeps.
//!
//! 1. A new epoch begins. Its position is the redo position: from there on each page's first change
//!    carries its image.
//! 2. When everything before it is filled, the checkpoint asks for the floor and the upper crates'
//!    values.
//! 3. It writes every page with an unwritten change from before the redo position. It stamps the
//!    data file with the checkpoint's number and syncs it.
//! 4. It appends its record and makes it durable: the control file promises that the log reaches at
//!    least there.
//! 5. It writes the control file. Only now does recovery begin at the new position.
//! 6. It releases the log before the floor.
//!
//! A crash between any two of these leaves the previous checkpoint in force with all it needs. An
//! I/O error in 3 to 5 ends the process: after a failed sync, another try cannot be trusted to
//! write the pages. After a full disk the checkpoint is tried again later. The previous one stays
//! in force meanwhile.

use std::sync::Arc;
use std::time::Duration;

use runtime::{Cause, Critical, fail_stop, fiber};
use sync::atomic::{AtomicBool, Ordering};

use crate::Error;
use crate::control::{Control, MOST_INFO};
use crate::datafile::Stamp;
use crate::log::Wal;
use crate::page::{Lsn, PageNo};
use crate::pool::Pool;

/// Time after the last checkpoint at which the next one is due, if anything was logged.
const INTERVAL: Duration = Duration::from_secs(300);
/// Time between two looks for a due checkpoint, and the longest pause of a paced one.
const TICK: Duration = Duration::from_millis(200);
const PACE: Duration = Duration::from_millis(20);
/// Time after the last checkpoint at which another one is tried because the log has no room.
const SHORT_INTERVAL: Duration = Duration::from_secs(1);

/// The pages of a store, as a checkpoint needs them.
pub trait CheckpointPages {
    /// Writes every page with a change logged before `lsn`. `pace(done, total)` may park.
    fn write_before(&self, lsn: Lsn, pace: &mut dyn FnMut(usize, usize)) -> Result<(), Error>;
    /// Stamps the data file with the folder's salt and the checkpoint's number, and makes it
    /// durable.
    fn seal(&self, salt: u32, generation: u64) -> Result<(), Error>;
    /// The number of pages in the data file.
    fn count(&self) -> u32;
}

impl CheckpointPages for Pool {
    fn write_before(&self, lsn: Lsn, pace: &mut dyn FnMut(usize, usize)) -> Result<(), Error> {
        self.flush_before_paced(lsn, pace)
    }

    fn seal(&self, salt: u32, generation: u64) -> Result<(), Error> {
        let file = self.file(PageNo(0));
        file.stamp(Stamp { salt, generation })?;
        file.sync()
    }

    fn count(&self) -> u32 {
        self.file(PageNo(0)).pages()
    }
}

/// Takes a checkpoint at full speed and returns its redo position. Waits for one that is under way.
pub fn run(wal: &Wal, pages: &dyn CheckpointPages) -> Result<Lsn, Error> {
    run_paced(wal, pages, false, &mut |_, _| {})
}

/// As [`run`], for the last checkpoint of a store that is closed: nobody appends any more.
pub(crate) fn run_last(wal: &Wal, pages: &dyn CheckpointPages) -> Result<Lsn, Error> {
    run_paced(wal, pages, true, &mut |_, _| {})
}

fn run_paced(
    wal: &Wal,
    pages: &dyn CheckpointPages,
    last: bool,
    pace: &mut dyn FnMut(usize, usize),
) -> Result<Lsn, Error> {
    // Acquire: this one sees what the last one wrote to the control file.
    while wal.checkpointing.swap(true, Ordering::Acquire) {
        fiber::sleep(PACE);
    }
    // After a panic, the pages in hand would never be written or evicted again, and no other
    // checkpoint would get its turn.
    let critical = Critical::begin("a checkpoint panicked");
    let result = run_alone(wal, pages, last, pace);
    critical.end();
    // Release: pairs with the swap.
    wal.checkpointing.store(false, Ordering::Release);
    match result {
        Err(error @ (Error::Io(_) | Error::Corrupt { .. })) => {
            fail_stop(Cause::Disk, format_args!("checkpoint: {error}"))
        }
        result => result,
    }
}

fn run_alone(
    wal: &Wal,
    pages: &dyn CheckpointPages,
    last: bool,
    pace: &mut dyn FnMut(usize, usize),
) -> Result<Lsn, Error> {
    runtime::stop::point("checkpoint.begin");
    let redo = wal.begin_epoch();
    let floor = wal.floor_source.get().map_or(redo, |source| source().min(redo));
    let info = wal.info_source.get().map_or_else(Vec::new, |source| source());
    assert!(info.len() <= MOST_INFO, "checkpoint info is at most {MOST_INFO} bytes");
    let count = pages.count();
    // Relaxed: one checkpoint at a time.
    let generation = wal.generation.load(Ordering::Relaxed) + 1;
    pages.write_before(redo, pace)?;
    pages.seal(wal.salt(), generation)?;
    runtime::stop::point("checkpoint.pages_written");
    wal.ensure_checkpoint()?;
    let appended = wal.append_checkpoint(&info);
    wal.wait_durable(appended)?;
    // The write may have filled its last block behind the record.
    let log_end = if last { wal.position() } else { appended };
    wal.wait_durable(log_end)?;
    runtime::stop::point("checkpoint.before_control");
    let (salt, segment_bytes) = (wal.salt(), wal.options().segment_bytes);
    // A late append between here and the end of the process is found by its record.
    let closed = last && wal.position() == log_end;
    wal.control.write(&Control {
        salt,
        segment_bytes,
        redo,
        floor,
        log_end,
        pages: count,
        generation,
        closed,
        info,
    })?;
    wal.generation.store(generation, Ordering::Relaxed); // Relaxed: as above
    runtime::stop::point("checkpoint.after_control");
    wal.truncate(floor)?;
    Ok(redo)
}

/// Takes checkpoints in the background: after a fixed volume of log, or after 300 s with anything
/// logged. When the disk is full, one is due after 1 s, since it turns old log segments into new
/// ones.
#[derive(Debug)]
pub struct Checkpointer {
    stop: AtomicBool,
    stopped: AtomicBool,
}

impl Checkpointer {
    /// Starts the background fiber on this core.
    pub fn start(wal: &Arc<Wal>, pool: &Arc<Pool>) -> Arc<Checkpointer> {
        let this = Arc::new(Checkpointer { stop: AtomicBool::new(false), stopped: AtomicBool::new(false) });
        let (checkpointer, wal, pool) = (this.clone(), wal.clone(), pool.clone());
        runtime::fiber::spawn_local(move || checkpointer.serve(&wal, &pool));
        this
    }

    /// Ends the fiber. It finishes a checkpoint that is under way without delay.
    pub fn stop(&self) {
        // Relaxed: only a request; `stopped` orders the memory.
        self.stop.store(true, Ordering::Relaxed);
        // Acquire: the caller sees the fiber's last writes.
        while !self.stopped.load(Ordering::Acquire) {
            fiber::sleep(PACE);
        }
    }

    fn stopping(&self) -> bool {
        // Relaxed: see `stop`.
        self.stop.load(Ordering::Relaxed)
    }

    fn serve(&self, wal: &Wal, pool: &Pool) {
        // The log's volume at the end of the last checkpoint, and the time of that end.
        let (mut before, mut since) = (wal.volume(), runtime::time::now());
        while !self.stopping() {
            fiber::sleep(TICK);
            wal.note_durable();
            let volume = wal.volume().saturating_sub(before);
            let interval = if wal.is_short() { SHORT_INTERVAL } else { INTERVAL };
            let due = volume >= wal.options().checkpoint_bytes / 2
                || (volume > 0 && runtime::time::now() - since >= interval.as_nanos() as u64);
            if !due {
                continue;
            }
            if let Err(error) = self.paced(wal, pool) {
                log::warn!("checkpoint put off: {error}");
            }
            (before, since) = (wal.volume(), runtime::time::now());
        }
        // Release: pairs with `stop`.
        self.stopped.store(true, Ordering::Release);
    }

    /// Takes a checkpoint that spreads its writes over half the time or half the log volume until
    /// the next one is due.
    fn paced(&self, wal: &Wal, pool: &Pool) -> Result<Lsn, Error> {
        let (start, begun) = (wal.volume(), runtime::time::now());
        run_paced(wal, pool, false, &mut |done, total| {
            let ahead = || {
                let volume =
                    wal.volume().saturating_sub(start) as f64 / (wal.options().checkpoint_bytes as f64 / 4.0);
                let time = (runtime::time::now() - begun) as f64 / (INTERVAL.as_nanos() as f64 / 2.0);
                done as f64 / total as f64 > volume.max(time)
            };
            while done < total && !self.stopping() && !wal.is_short() && ahead() {
                fiber::sleep(PACE);
            }
        })
    }
}
