//! Row `preload`: new memory, which all sessions reach together for the first time.
//!
//! The making does not count. The fix moves the cost of a page from the sessions to a server's
//! start, where it may well be higher. A session has a mapping of its own, as a process has, and
//! faults once for each page of it. Linux takes no exclusive lock for that, so B14's stands around
//! the touch in the first two arms. It is exclusive for a page that is not there, and shared for
//! one that is: the fix of row `fault-path`. With populated memory there is no page to make. With
//! many sessions most touches are of pages that another one has made.
//!
//! The engine's sessions share one mapping, which is touched ahead. Its pages are huge by default.
//! The arm that stands for it has ordinary ones, as the published fix has.

use std::io;
use std::sync::Arc;

use calls::memory::{Mapping, Object, PageKind, STEP, Toucher, WITH_NOTHING};
use runtime::memory::AtomicArray;
use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use variants::caller::Caller;
use variants::latch::{HeldLatch, Latch, TurnstileLatch};

use super::fault_path::{BYTES, begin};
use super::{Arm, Part, Row, Started};
use crate::meeting::Meeting;
use crate::round::{Subject, Worker};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// The word of a page that a session reaches: in another line than the one that the engine touches
/// ahead.
const REACHED: usize = STEP / 2 / WORD;
/// [`Region::new`] with pages that are there before a pass.
const POPULATED: bool = true;
/// [`Region::new`] with pages that a pass has to make.
const EMPTY: bool = false;

/// The row.
pub(super) const ROW: Row = Row {
    id: "preload",
    report: "B14",
    about: "new shared memory: each page allocated at its first touch under the object's lock, against all made \
            present at once",
    operation: "reach 4 KiB of 4 MiB that is new to all sessions, which begin together. Pages are ordinary, \
                except in the arms named huge. The making does not count",
    needs: None,
    code: "crates/calls/src/memory",
    arms: &[
        Arm { name: "first touch", part: Part::Stock, start: |threads| locked(threads, EMPTY) },
        Arm { name: "populated", part: Part::Published, start: |threads| locked(threads, POPULATED) },
        Arm {
            name: "first touch, no lock",
            part: Part::Step,
            start: |threads| unlocked(threads, PageKind::Ordinary, EMPTY),
        },
        Arm {
            name: "populated, no lock",
            part: Part::Step,
            start: |threads| unlocked(threads, PageKind::Ordinary, POPULATED),
        },
        Arm {
            name: "transparent huge",
            part: Part::Step,
            start: |threads| unlocked(threads, PageKind::Transparent, EMPTY),
        },
        Arm {
            name: "reserved huge",
            part: Part::Step,
            start: |threads| unlocked(threads, PageKind::Reserved, EMPTY),
        },
        Arm {
            name: "processes",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Ordinary, EMPTY),
        },
        Arm {
            name: "processes, populated",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Ordinary, POPULATED),
        },
        Arm {
            name: "processes, huge",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Transparent, EMPTY),
        },
        Arm {
            name: "processes, reserved",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Reserved, EMPTY),
        },
        Arm {
            name: "touched ahead",
            part: Part::Allcore,
            start: |threads| arrays(threads, AtomicArray::reserve),
        },
        Arm {
            name: "touched ahead, huge",
            part: Part::Step,
            start: |threads| arrays(threads, AtomicArray::reserve_huge),
        },
    ],
};

/// Shared memory that is new in each pass.
#[derive(Debug)]
struct Region {
    object: Object,
    all: Mapping,
    populated: bool,
    /// The touches of the passes that are over.
    reached: AtomicU64,
}

impl Region {
    fn new(kind: PageKind, populated: bool) -> Result<Self, String> {
        let object = Object::new(BYTES, kind)?;
        let all = Mapping::of(&object, WITH_NOTHING)?;
        Ok(Self { object, all, populated, reached: AtomicU64::new(0) })
    }

    /// Makes the memory new: takes all pages away, and makes others present where that is the arm.
    fn renew(&self) {
        // Relaxed: read after the threads' end.
        self.reached.fetch_add(self.all.touches(), Ordering::Relaxed);
        self.all.remove().expect("the kernel takes pages of shared memory back");
        if self.populated {
            self.all.populate().expect("the kernel makes pages present");
        }
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        has_reached(self.reached.load(Ordering::Relaxed) + self.all.touches(), operations)
    }
}

fn has_reached(reached: u64, operations: u64) -> Result<(), String> {
    match reached == operations {
        true => Ok(()),
        false => Err(format!("{operations} touches have reached {reached} steps")),
    }
}

/// Repeats passes that all threads begin together. `between` makes the memory new, `touch` reaches
/// all of it. A pass takes until the last thread has done so. The wake-ups of its threads count,
/// for all arms alike.
fn passes(
    worker: &mut Worker<'_>,
    meeting: &Meeting,
    between: impl Fn(),
    mut touch: impl FnMut(&mut Caller),
) {
    meeting.come(&between);
    worker.repeat_timed(|me| {
        touch(me);
        ((BYTES / STEP) as u64, Some(meeting.come(&between)))
    });
    meeting.leave(between);
}

fn locked(threads: usize, populated: bool) -> Started {
    sessions(threads, PageKind::Ordinary, populated, Some(ObjectLock::new(threads)))
}

fn unlocked(threads: usize, kind: PageKind, populated: bool) -> Started {
    sessions(threads, kind, populated, None)
}

fn sessions(threads: usize, kind: PageKind, populated: bool, lock: Option<ObjectLock>) -> Started {
    let region = Region::new(kind, populated)?;
    Ok(Box::new(Sessions { region, lock, meeting: Meeting::of(threads) }))
}

/// The lock of B14's memory object.
#[derive(Debug)]
struct ObjectLock {
    latch: TurnstileLatch,
    /// The pages that are there, by step.
    resident: Box<[AtomicBool]>,
}

impl ObjectLock {
    fn new(threads: usize) -> Self {
        let resident = (0..BYTES / STEP).map(|_| AtomicBool::new(false)).collect();
        Self { latch: TurnstileLatch::new(threads), resident }
    }

    /// The object has all pages, or none.
    fn reset(&self, populated: bool) {
        // Relaxed: the meeting orders it.
        self.resident.iter().for_each(|page| page.store(populated, Ordering::Relaxed));
    }

    /// Touches a step under the lock: shared if its page is there.
    #[inline]
    fn touch(&self, me: &mut Caller, step: usize, mapping: &Mapping) {
        let resident = &self.resident[step];
        // Relaxed, both: a hint, by which a thread chooses the lock.
        if resident.load(Ordering::Relaxed) {
            self.latch.read(me, || mapping.touch(step));
        } else {
            self.latch.write(me, || {
                mapping.touch(step);
                resident.store(true, Ordering::Relaxed);
            });
        }
    }
}

/// Threads with a mapping each.
#[derive(Debug)]
struct Sessions {
    region: Region,
    /// Where B14's lock stands around each touch.
    lock: Option<ObjectLock>,
    meeting: Meeting,
}

impl Sessions {
    fn renew(&self) {
        self.region.renew();
        self.lock.iter().for_each(|lock| lock.reset(self.region.populated));
    }
}

impl Subject for Sessions {
    fn work(&self, worker: &mut Worker<'_>) {
        let mapping = match Mapping::of(&self.region.object, WITH_NOTHING) {
            Ok(mapping) => mapping,
            Err(reason) => {
                self.meeting.leave(|| self.renew());
                return worker.refuse(reason);
            }
        };
        let (steps, begin) = (mapping.steps(), begin(worker.number(), mapping.steps()));
        let reach = |me: &mut Caller| {
            for step in (0..steps).map(|step| (begin + step) % steps) {
                match &self.lock {
                    Some(lock) => lock.touch(me, step, &mapping),
                    None => mapping.touch(step),
                }
            }
        };
        passes(worker, &self.meeting, || self.renew(), reach);
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        self.region.check(operations)
    }
}

fn processes(threads: usize, kind: PageKind, populated: bool) -> Started {
    let region = Region::new(kind, populated)?;
    let start = |thread| {
        let toucher = Toucher::start(&region.object, &region.all, begin(thread, region.all.steps()));
        toucher.map(Mutex::new)
    };
    let touchers = (0..threads).map(start).collect::<Result<_, _>>()?;
    Ok(Box::new(Processes { region, touchers, meeting: Meeting::of(threads) }))
}

/// Processes with an address space each. A thread asks its process for each pass.
#[derive(Debug)]
struct Processes {
    region: Region,
    touchers: Box<[Mutex<Toucher>]>,
    meeting: Meeting,
}

impl Subject for Processes {
    fn work(&self, worker: &mut Worker<'_>) {
        let toucher = self.touchers[worker.number()].lock();
        passes(worker, &self.meeting, || self.region.renew(), |_| toucher.touch());
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn is_within(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        self.region.check(operations)
    }
}

/// The engine's memory for words.
type Words = AtomicArray<AtomicU64>;
/// Makes memory for so many words.
type Reserve = fn(usize) -> io::Result<Words>;

/// The engine's memory, touched as the engine touches it ahead of use, and one for all threads.
#[derive(Debug)]
struct Arrays {
    reserve: Reserve,
    words: Mutex<Arc<Words>>,
    reached: AtomicU64,
    meeting: Meeting,
}

fn arrays(threads: usize, reserve: Reserve) -> Started {
    let words = reserve(BYTES / WORD).map_err(|error| format!("no memory for an array: {error}"))?;
    let (words, reached) = (Mutex::new(Arc::new(words)), AtomicU64::new(0));
    Ok(Box::new(Arrays { reserve, words, reached, meeting: Meeting::of(threads) }))
}

/// The word of each step.
fn steps(words: &Words) -> impl Iterator<Item = &AtomicU64> {
    (REACHED..words.len()).step_by(STEP / WORD).map(|word| words.get(word))
}

impl Arrays {
    /// Adds up the touches of the array, and makes another one.
    fn renew(&self) {
        let mut words = self.words.lock();
        // Relaxed, both: counts.
        let touches = steps(&words).map(|word| word.load(Ordering::Relaxed)).sum();
        self.reached.fetch_add(touches, Ordering::Relaxed);
        let other = (self.reserve)(BYTES / WORD).expect("memory for an array");
        other.touch(other.len());
        *words = Arc::new(other);
    }
}

impl Subject for Arrays {
    fn work(&self, worker: &mut Worker<'_>) {
        let reach = |_: &mut Caller| {
            let words = Arc::clone(&self.words.lock());
            // Relaxed: a count.
            steps(&words).for_each(|word| _ = word.fetch_add(1, Ordering::Relaxed));
        };
        passes(worker, &self.meeting, || self.renew(), reach);
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        self.renew();
        // Relaxed: the threads have ended.
        has_reached(self.reached.load(Ordering::Relaxed), operations)
    }
}
