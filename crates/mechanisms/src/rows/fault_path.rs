//! Row `fault-path`: first touches of shared memory that is resident, by threads and by processes.
//!
//! Linux faults without an exclusive lock. So the two locks of B14's kernels stand around the touch
//! here, and the first two arms differ by the lock. The others differ by their pages, and by
//! whether threads or processes fault.

use calls::memory::{Mapping, Object, PageKind, STEP, Toucher, WITH_ALL_PRESENT, WITH_NOTHING};
use runtime::memory::{HugePages, Region, lock};
use sync::Mutex;
use variants::caller::Caller;
use variants::latch::{HeldLatch, Latch, TurnstileLatch};

use super::{Arm, COUNTED, Part, Row, Started, UNCOUNTED};
use crate::round::{Subject, Worker};

/// The memory that all reach: two huge pages.
pub(super) const BYTES: usize = 4 << 20;

/// The row.
pub(super) const ROW: Row = Row {
    id: "fault-path",
    report: "B14",
    about: "faults on resident shared memory: the object's lock exclusive, against shared, against no fault",
    operation: "reach 4 KiB of 4 MiB; all is forgotten after each pass, but not by the last arm",
    needs: None,
    code: "crates/calls/src/memory",
    arms: &[
        Arm {
            name: "exclusive lock",
            part: Part::Stock,
            start: |threads| within(threads, |latch, me, touch| latch.write(me, touch)),
        },
        Arm {
            name: "shared lock",
            part: Part::Published,
            start: |threads| within(threads, |latch, me, touch| latch.read(me, touch)),
        },
        Arm { name: "threads", part: Part::Step, start: |_| threads(PageKind::Ordinary) },
        Arm { name: "processes", part: Part::Step, start: |threads| processes(threads, PageKind::Ordinary) },
        Arm {
            name: "processes, huge",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Transparent),
        },
        Arm {
            name: "processes, reserved",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Reserved),
        },
        Arm { name: "transparent huge", part: Part::Step, start: |_| threads(PageKind::Transparent) },
        Arm { name: "reserved huge", part: Part::Step, start: |_| threads(PageKind::Reserved) },
        // Ordinary pages, as the stock state has.
        Arm { name: "Region", part: Part::Allcore, start: |_| region(HugePages::Off) },
    ],
};

/// A touch under a lock.
type Within = fn(&TurnstileLatch, &mut Caller, &dyn Fn());

fn within(threads: usize, around: Within) -> Started {
    let (latch, shared) = (TurnstileLatch::new(threads), Shared::new(PageKind::Ordinary)?);
    Ok(Box::new(Faults {
        shared,
        touch: move |mapping: &Mapping, me: &mut Caller, step| {
            around(&latch, me, &|| mapping.touch(step));
        },
        counts_retries: COUNTED,
    }))
}

fn threads(kind: PageKind) -> Started {
    let shared = Shared::new(kind)?;
    let touch = |mapping: &Mapping, _: &mut Caller, step| mapping.touch(step);
    Ok(Box::new(Faults { shared, touch, counts_retries: UNCOUNTED }))
}

/// Memory that is resident, and a mapping that keeps count.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) object: Object,
    pub(super) all: Mapping,
}

impl Shared {
    pub(super) fn new(kind: PageKind) -> Result<Self, String> {
        let object = Object::new(BYTES, kind)?;
        let all = Mapping::of(&object, WITH_ALL_PRESENT)?;
        Ok(Self { object, all })
    }

    /// Whether that many touches were counted.
    pub(super) fn check(&self, operations: u64) -> Result<(), String> {
        let touches = self.all.touches();
        if touches == operations {
            Ok(())
        } else {
            Err(format!("{operations} touches have added up to {touches}"))
        }
    }
}

/// The step at which a thread begins: threads are spread over the memory.
pub(super) fn begin(thread: usize, steps: usize) -> usize {
    thread * 97 % steps
}

/// Threads with a mapping each, in one address space.
struct Faults<T> {
    shared: Shared,
    touch: T,
    counts_retries: bool,
}

impl<T: Fn(&Mapping, &mut Caller, usize) + Sync> Subject for Faults<T> {
    fn work(&self, worker: &mut Worker<'_>) {
        let mapping = match Mapping::of(&self.shared.object, WITH_NOTHING) {
            Ok(mapping) => mapping,
            Err(reason) => return worker.refuse(reason),
        };
        let (steps, mut done) = (mapping.steps(), 0);
        let begin = begin(worker.number(), steps);
        worker.repeat(|me| {
            (self.touch)(&mapping, me, (begin + done) % steps);
            done += 1;
            if done == steps {
                assert!(mapping.forget(), "the kernel forgets a mapping's entries");
                done = 0;
            }
        });
    }

    fn counts_retries(&self) -> bool {
        self.counts_retries
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        self.shared.check(operations)
    }

    fn shoots_down(&self) -> bool {
        true
    }
}

fn processes(threads: usize, kind: PageKind) -> Started {
    let shared = Shared::new(kind)?;
    let mapping = Mapping::of(&shared.object, WITH_NOTHING)?;
    let start =
        |thread| Toucher::start(&shared.object, &mapping, begin(thread, mapping.steps())).map(Mutex::new);
    let touchers = (0..threads).map(start).collect::<Result<_, _>>()?;
    Ok(Box::new(Processes { shared, touchers }))
}

/// Processes with an address space each. A thread asks its process for each pass.
#[derive(Debug)]
struct Processes {
    shared: Shared,
    touchers: Box<[Mutex<Toucher>]>,
}

impl Subject for Processes {
    fn work(&self, worker: &mut Worker<'_>) {
        let toucher = self.touchers[worker.number()].lock();
        worker.repeat_many(|_| {
            toucher.touch_and_forget();
            self.shared.all.steps() as u64
        });
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn is_within(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        self.shared.check(operations)
    }

    fn shoots_down(&self) -> bool {
        true
    }
}

/// The engine's memory for frames: mapped and locked once, touched before use.
pub(super) fn region(pages: HugePages) -> Started {
    let region = Region::frames(BYTES, pages).map_err(|error| format!("no memory: {error}"))?;
    lock(&[&region]).map_err(|reason| format!("no locked memory: {reason}"))?;
    region.touch(0..region.len());
    Ok(Box::new(Own(region)))
}

#[derive(Debug)]
struct Own(Region);

impl Subject for Own {
    fn work(&self, worker: &mut Worker<'_>) {
        let Self(region) = self;
        let steps = BYTES / STEP;
        let begin = begin(worker.number(), steps);
        worker.repeat_many(|_| {
            for step in (0..steps).map(|step| (begin + step) % steps) {
                region.touch(step * STEP..(step + 1) * STEP);
            }
            steps as u64
        });
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, _: u64) -> Result<(), String> {
        match self.0.present(0..BYTES) {
            BYTES => Ok(()),
            present => Err(format!("{present} of {BYTES} bytes are present after the round")),
        }
    }

    fn shoots_down(&self) -> bool {
        true
    }
}
