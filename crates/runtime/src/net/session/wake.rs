//! Waking a session from outside.

use std::sync::Arc;
use std::task::{Wake, Waker};

use sync::atomic::{AtomicBool, Ordering};

use crate::fiber::core;
use crate::mail::Link;
use crate::net::{self, Net};
use crate::shared::Shared;

/// A waker that calls a session's `serve` soon, even if no bytes have come. It works from any core
/// or thread and does nothing when the session has ended.
pub(super) fn waker(net: &Net, key: u64) -> Waker {
    Waker::from(Arc::new(Remote {
        link: Link::new(deliver),
        queued: AtomicBool::new(false),
        core: net.core,
        key,
        shared: net.shared.clone(),
    }))
}

/// The part of a session that other threads hold.
#[repr(C)]
struct Remote {
    link: Link,
    /// In its core's mailbox.
    queued: AtomicBool,
    core: usize,
    key: u64,
    shared: Arc<Shared>,
}

// SAFETY: the link is made for any thread, the flag is atomic, the rest never changes.
unsafe impl Send for Remote {}
// SAFETY: as above.
unsafe impl Sync for Remote {}

impl Wake for Remote {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if core::current().is_some_and(|core| core.is(self.core, &self.shared)) {
            return net::here().woken(self.key);
        }
        // AcqRel: what was written before the wake-up is seen when it is delivered.
        if !self.queued.swap(true, Ordering::AcqRel) {
            let link = Arc::into_raw(Arc::clone(self)).cast_mut().cast::<Link>();
            // SAFETY: the reference given away keeps it alive until `deliver` takes it back. The
            // flag was not set, so it is in no mailbox, and `deliver` fits a `Remote`.
            unsafe { self.shared.mailbox(self.core).push(link) };
        }
    }
}

/// # Safety
/// `link` is the first field of a `Remote` whose reference was given away by [`Wake::wake`],
/// delivered once.
unsafe fn deliver(link: *mut Link, on_core: bool) {
    // SAFETY: by contract; `repr(C)` puts the link first.
    let remote = unsafe { Arc::from_raw(link.cast_const().cast::<Remote>()) };
    // AcqRel: a waker that still saw it queued wrote before this.
    remote.queued.swap(false, Ordering::AcqRel);
    if on_core {
        net::here().woken(remote.key);
    }
}
