//! Row `title`: sessions that show what they run.

use calls::title::{CommFile, NameCall, Off, Title};
use std::marker::PhantomData;
use sync::Caption;
use sync::atomic::{AtomicBool, Ordering};

use super::{Arm, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// Steps of a statement, some 500 ns.
const STATEMENT: u32 = 250;

/// The row.
pub(super) const ROW: Row = Row {
    id: "title",
    report: "B14",
    about: "the statement that a session shows: a system call a title, against none, against shared memory",
    operation: "show a statement, compute for 0.5 us, show that the session is idle",
    needs: None,
    code: "crates/calls/src/title.rs",
    arms: &[
        Arm { name: "prctl", part: Part::Stock, start: sessions::<NameCall> },
        Arm { name: "/proc file", part: Part::Step, start: sessions::<CommFile> },
        Arm { name: "off", part: Part::Published, start: sessions::<Off> },
        Arm { name: "Caption", part: Part::Allcore, start: sessions::<Shown> },
    ],
};

/// The engine's text of a session in `pg_stat_activity`: plain stores that readers validate.
#[derive(Debug)]
struct Shown(Caption);

impl Title for Shown {
    fn new() -> Result<Self, String> {
        Ok(Self(Caption::default()))
    }

    #[inline]
    fn set(&self, text: &str) {
        self.0.write(text);
    }

    fn shown(&self) -> Option<String> {
        Some(self.0.read())
    }
}

fn sessions<T: Title + 'static>(_: usize) -> Started {
    Ok(Box::new(Sessions::<T> { is_wrong: AtomicBool::new(false), title: PhantomData }))
}

#[derive(Debug)]
struct Sessions<T> {
    is_wrong: AtomicBool,
    /// Each thread makes its own.
    title: PhantomData<fn() -> T>,
}

impl<T: Title> Subject for Sessions<T> {
    fn work(&self, worker: &mut Worker<'_>) {
        let title = match T::new() {
            Ok(title) => title,
            Err(reason) => return worker.refuse(reason),
        };
        let idle = format!("idle {}", worker.number());
        worker.repeat(|_| {
            title.set("SELECT");
            compute(STATEMENT);
            title.set(&idle);
        });
        if title.shown().is_some_and(|shown| shown != idle) {
            // Relaxed: read after the threads' end.
            self.is_wrong.store(true, Ordering::Relaxed);
        }
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err("a session shows another title than its last one".into());
        }
        Ok(())
    }
}
