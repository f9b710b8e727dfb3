//! Interrupts ask a running or waiting statement to give up.
//!
//! A session has one [`Interrupt`] (`interrupt/reasons.rs`). Here is how running code obeys it: by
//! looks at it, by waits that it ends, and by masks that leave it pending.

mod reasons;

use std::cell::{Cell, RefCell};
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sync::core_local;

pub use reasons::{Interrupt, Interrupted, Reason};

use crate::{os, timer};

core_local! {
    /// The interrupt that the running code obeys. A fiber takes it along when it is suspended.
    static OBEYED: Cell<*const Interrupt> = const { Cell::new(ptr::null()) };
    /// How many [`mask`]s that code is within.
    static MASKED: Cell<u32> = const { Cell::new(0) };
    /// The interrupt of the call beside the cores that this thread runs.
    static CALL: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
}

/// The interrupt that a suspended fiber obeys when it runs again.
pub(crate) struct Kept {
    obeyed: *const Interrupt,
    masked: u32,
}

/// The running code obeys this interrupt from now on, or none (null). It must live until another
/// call of this function, or be kept alive beyond it by the fiber that runs.
#[inline]
pub(crate) fn obey(interrupt: *const Interrupt) {
    OBEYED.set(interrupt);
}

/// The running fiber is about to be suspended: the code that runs next obeys no interrupt.
#[inline]
pub(crate) fn leave() -> Kept {
    Kept { obeyed: OBEYED.replace(ptr::null()), masked: MASKED.replace(0) }
}

/// The fiber goes on.
#[inline]
pub(crate) fn enter(kept: Kept) {
    OBEYED.set(kept.obeyed);
    MASKED.set(kept.masked);
}

/// Calls `body` with the interrupt that the running code obeys, masked or not.
#[inline]
pub(crate) fn with_obeyed<R>(body: impl FnOnce(Option<&Interrupt>) -> R) -> R {
    // SAFETY: the caller of `obey` keeps the interrupt alive until it calls it again, and `body`
    // does not get the chance to keep the reference.
    body(unsafe { OBEYED.get().as_ref() })
}

/// Whether the running code leaves its interrupts pending.
#[inline]
pub(crate) fn is_masked() -> bool {
    MASKED.get() != 0
}

/// The interrupt that is obeyed now: none while masked.
#[inline]
fn obeyed<'a>() -> Option<&'a Interrupt> {
    if is_masked() {
        return None;
    }
    // SAFETY: as in `with_obeyed`; no caller keeps the reference across a call of `obey`.
    unsafe { OBEYED.get().as_ref() }
}

/// Takes the pending reason of the interrupt that the running fiber obeys, if any and not masked.
#[inline]
pub fn check() -> Result<(), Interrupted> {
    match obeyed() {
        Some(interrupt) if interrupt.is_pending() => {
            interrupt.take().map_or(Ok(()), |reason| Err(Interrupted(reason)))
        }
        _ => Ok(()),
    }
}

/// This thread runs a call beside the cores with this interrupt, or none any more.
pub(crate) fn set_call(interrupt: Option<Arc<Interrupt>>) {
    CALL.set(interrupt);
}

/// Whether this thread runs a call beside the cores.
pub(crate) fn is_call() -> bool {
    CALL.with_borrow(Option::is_some)
}

/// Ends a call that was interrupted; does nothing on other threads. The reason stays pending for
/// the fiber.
pub(crate) fn check_call() -> Result<(), Interrupted> {
    CALL.with_borrow(|call| match call.as_ref().and_then(|interrupt| interrupt.pending()) {
        Some(reason) => Err(Interrupted(reason)),
        None => Ok(()),
    })
}

/// Raises the interrupt of the running fiber, or of the call that this thread runs beside the
/// cores. For code that cannot return an error but must end the statement.
pub(crate) fn raise_own(reason: Reason) {
    CALL.with_borrow(|call| match call {
        Some(interrupt) => interrupt.raise(reason),
        None => obeyed().into_iter().for_each(|interrupt| interrupt.raise(reason)),
    });
}

/// Parks as `sync::park::park` (may return for no reason), but gives up on an interrupt.
pub fn park() -> Result<(), Interrupted> {
    match obeyed() {
        Some(interrupt) => {
            interrupt.park_unless(Interrupt::is_pending);
            interrupt.take().map_or(Ok(()), |reason| Err(Interrupted(reason)))
        }
        None => {
            sync::park::park();
            Ok(())
        }
    }
}

/// Parks the running fiber for a time, or until it is interrupted.
pub fn sleep(time: Duration) -> Result<(), Interrupted> {
    if !timer::is_fired() {
        os::thread::sleep(time);
        return Ok(());
    }
    let waker = sync::park::current();
    let over = Rc::new(Cell::new(false));
    let tell = Rc::clone(&over);
    let timer = timer::after(time, move || {
        tell.set(true);
        waker.wake();
    });
    while !over.get() {
        if let Err(interrupted) = park() {
            timer::cancel(timer);
            return Err(interrupted);
        }
    }
    Ok(())
}

/// Runs `body` without being interrupted: for what must finish (commit, rollback). Reasons raised
/// meanwhile stay pending.
pub fn mask<R>(body: impl FnOnce() -> R) -> R {
    struct Unmask;
    impl Drop for Unmask {
        fn drop(&mut self) {
            MASKED.set(MASKED.get() - 1);
        }
    }
    MASKED.set(MASKED.get() + 1);
    let _unmask = Unmask;
    body()
}
