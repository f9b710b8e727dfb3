//! Waking a session from outside.

use std::sync::Arc;
use std::task::{Wake, Waker};

use sync::atomic::{AtomicBool, Ordering};

use crate::fiber::core;
use crate::mailbox::Link;
use crate::net::{self, Net};
use crate::shared::Shared;

/// Wakes a session from outside, so that its `serve` is called.
#[derive(Clone)]
pub struct WakeHandle(Arc<Remote>);

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

impl std::fmt::Debug for WakeHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "WakeHandle(core {}, session {:x})", self.0.core, self.0.key)
    }
}

// SAFETY: the link is made for any thread, the flag is atomic, the rest never changes.
unsafe impl Send for Remote {}
// SAFETY: as above.
unsafe impl Sync for Remote {}

impl Wake for Remote {
    fn wake(self: Arc<Self>) {
        WakeHandle(self).wake();
    }
}

impl WakeHandle {
    /// A handle for the session with this key.
    pub(super) fn new(net: &Net, key: u64) -> WakeHandle {
        WakeHandle(Arc::new(Remote {
            link: Link::new(deliver),
            queued: AtomicBool::new(false),
            core: net.core,
            key,
            shared: net.shared.clone(),
        }))
    }

    /// The same as a waker.
    pub(super) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.0))
    }

    /// Calls the session's `serve` soon, even if no bytes have come. From any core or thread;
    /// nothing happens when the session has ended.
    pub fn wake(&self) {
        if core::current().is_some_and(|core| core.is(self.0.core, &self.0.shared)) {
            return net::here().woken(self.0.key);
        }
        // AcqRel: what was written before the wake-up is seen when it is delivered.
        if !self.0.queued.swap(true, Ordering::AcqRel) {
            let link = Arc::into_raw(self.0.clone()).cast_mut().cast::<Link>();
            // SAFETY: the reference given away keeps it until `deliver` takes it back, the flag
            // says that it is in no mailbox, and `deliver` fits a `Remote`.
            unsafe { self.0.shared.mailbox(self.0.core).push(link) };
        }
    }
}

/// # Safety
/// `link` is the first field of a `Remote` whose reference was given away by [`WakeHandle::wake`],
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
