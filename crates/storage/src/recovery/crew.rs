//! Redo by all cores.
//!
//! One fiber reads the log and hands each part of a record to the member that owns its page. The
//! members, several on each core, apply the parts. What must hold:
//!
//! 1. A page belongs to one member, and a member applies parts in the order in which it gets them.
//!    So each page's changes keep the log's order. Changes of different pages need no order, since
//!    each page's own LSN says what it contains.
//! 2. The reader hands a member no batch while that member has [`AHEAD`] batches to apply. So a
//!    long log needs little memory: at most `EACH_CORE` × `AHEAD` batches for each core, 16 MiB of
//!    payload.
//! 3. [`redo`] returns only when every member has ended: nobody changes a page afterwards. After a
//!    failure the others stop soon. It returns the failure that comes first in the log.
//!
//! A core has several members, since most of redo's time is waiting for pages to be read.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use runtime::{Critical, Runtime, fiber};
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sync::{SpinLock, WaitQueue};

use super::{PoolPages, Recovery, RedoOp, redo_part};
use crate::Error;
use crate::log::{Part, PartForm};
use crate::page::{Lsn, PageNo};
use crate::pool::Pool;

/// Members on each core: the number of reads under way at a time.
const EACH_CORE: usize = 8;
/// Approximate bytes of payload in one batch.
const BATCH: usize = 256 << 10;
/// The most parts in one batch.
const PARTS: usize = 8192;
/// The most batches that one member may have to apply.
const AHEAD: usize = 8;

/// A stretch of the log.
struct Batch {
    bytes: Vec<u8>,
    /// Each member's records, in the log's order.
    tasks: Vec<Vec<Task>>,
}

/// One part of a record.
struct Task {
    page: PageNo,
    op: u8,
    form: PartForm,
    lsn: Lsn,
    payload: Range<usize>,
}

/// State that the reader and the members share.
struct Shared {
    pool: Arc<Pool>,
    end: Lsn,
    discards: bool,
    op: RedoOp,
    members: Vec<Member>,
    /// The queue in which the reader waits for members.
    progress: WaitQueue,
    /// Whether the reader has handed on the last batch.
    closed: AtomicBool,
    /// Members that have ended.
    ended: AtomicUsize,
    /// The failure that comes first in the log, and its position.
    failure: SpinLock<Option<(Lsn, Error)>>,
    failed: AtomicBool,
}

struct Member {
    batches: SpinLock<VecDeque<Arc<Batch>>>,
    changed: WaitQueue,
    /// Batches that the member has to apply.
    due: AtomicUsize,
}

impl Member {
    fn new() -> Member {
        Member {
            batches: SpinLock::new(&"redo batches", VecDeque::new()),
            changed: WaitQueue::new(&"redo batch"),
            due: AtomicUsize::new(0),
        }
    }
}

/// Repeats the log that `recovery` found, through `pool`. Runs in a fiber of `runtime`.
pub(crate) fn redo(
    recovery: &Recovery,
    runtime: &Runtime,
    pool: &Arc<Pool>,
    op: RedoOp,
) -> Result<(), Error> {
    let cores = runtime.core_count();
    let shared = Arc::new(Shared {
        pool: Arc::clone(pool),
        end: recovery.end,
        discards: recovery.discards.is_some(),
        op,
        members: (0..cores * EACH_CORE).map(|_| Member::new()).collect(),
        progress: WaitQueue::new(&"redo progress"),
        closed: AtomicBool::new(false),
        ended: AtomicUsize::new(0),
        failure: SpinLock::new(&"redo failure", None),
        failed: AtomicBool::new(false),
    });
    for number in 0..shared.members.len() {
        let shared = Arc::clone(&shared);
        runtime.spawn(number % cores, move || shared.serve(number));
    }
    let read = shared.hand_out(recovery);
    // Release: a member that sees it finds the last batches.
    shared.closed.store(true, Ordering::Release);
    shared.members.iter().for_each(|member| member.changed.wake_all());
    // Acquire: the reader sees the members' last changes.
    shared.progress.wait_until(|| shared.ended.load(Ordering::Acquire) == shared.members.len());
    let failure = shared.failure.lock().take();
    failure.map_or(read, |(_, error)| Err(error))
}

impl Shared {
    fn hand_out(&self, recovery: &Recovery) -> Result<(), Error> {
        let mut batch = self.batch();
        let mut parts = 0;
        recovery.redo(&mut |lsn, part| {
            let start = batch.bytes.len();
            batch.bytes.extend_from_slice(part.payload);
            let payload = start..batch.bytes.len();
            let task = Task { page: part.page, op: part.op, form: part.form, lsn, payload };
            batch.tasks[self.member_of(part.page)].push(task);
            parts += 1;
            if batch.bytes.len() >= BATCH || parts >= PARTS {
                parts = 0;
                self.hand_on(std::mem::replace(&mut batch, self.batch()));
                // Relaxed: only spares the rest of the work.
                if self.failed.load(Ordering::Relaxed) {
                    let failure = self.failure.lock().clone();
                    return failure.map_or(Ok(()), |(_, error)| Err(error));
                }
            }
            Ok(())
        })?;
        self.hand_on(batch);
        Ok(())
    }

    fn batch(&self) -> Batch {
        let tasks = self.members.iter().map(|_| Vec::new()).collect();
        Batch { bytes: Vec::with_capacity(BATCH), tasks }
    }

    fn member_of(&self, page: PageNo) -> usize {
        // Neighbouring pages go to different members.
        page.0.wrapping_mul(0x9e37_79b1) as usize % self.members.len()
    }

    /// Hands a batch to the members that have a task in it, once they are not too far behind.
    fn hand_on(&self, batch: Batch) {
        let batch = Arc::new(batch);
        for (member, _) in self.members.iter().zip(&batch.tasks).filter(|(_, tasks)| !tasks.is_empty()) {
            // Acquire: pairs with the member's decrement; only bounds the memory.
            self.progress.wait_until(|| member.due.load(Ordering::Acquire) < AHEAD);
            // Relaxed: the reader alone raises it, before the batch is there.
            member.due.fetch_add(1, Ordering::Relaxed);
            member.batches.lock().push_back(Arc::clone(&batch));
            member.changed.wake_all();
        }
    }

    /// Applies the member's batches until the reader has closed.
    fn serve(&self, number: usize) {
        // After a panic the reader would wait for ever.
        let critical = Critical::begin("panic while the log is repeated");
        let member = &self.members[number];
        loop {
            let mut next = None;
            member.changed.wait_until(|| {
                // Loaded before the look at the queue. Acquire: the member sees what was handed on
                // before the end.
                let closed = self.closed.load(Ordering::Acquire);
                next = member.batches.lock().pop_front();
                next.is_some() || closed
            });
            let Some(batch) = next else { break };
            self.apply(&batch, number);
            drop(batch);
            // Release: pairs with the reader's look.
            member.due.fetch_sub(1, Ordering::Release);
            self.progress.wake_all();
        }
        critical.end();
        // Release: pairs with the reader's wait.
        self.ended.fetch_add(1, Ordering::Release);
        self.progress.wake_all();
    }

    fn apply(&self, batch: &Batch, number: usize) {
        let mut pages = PoolPages { pool: &self.pool, end: self.end, discards: self.discards };
        for task in &batch.tasks[number] {
            // Relaxed: only spares work.
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            let payload = &batch.bytes[task.payload.clone()];
            let part = Part { page: task.page, op: task.op, payload, form: task.form };
            if let Err(error) = redo_part(&mut pages, self.op, task.lsn, part) {
                let mut failure = self.failure.lock();
                if failure.as_ref().is_none_or(|(lsn, _)| task.lsn < *lsn) {
                    *failure = Some((task.lsn, error));
                }
                self.failed.store(true, Ordering::Relaxed); // Relaxed: as above
                return;
            }
            fiber::safe_point();
        }
    }
}
