//! A lock-free list of messages for one core, which the core takes whole, and the word by which the
//! core says that it sleeps.
//!
//! A message embeds a [`Link`] as its first field, so a wake-up allocates nothing. Law of the
//! sleeper: the core stores that it sleeps, then tests its list again. A sender pushes, then tests
//! whether the core sleeps. Both steps are SeqCst, so one of the two sees the other.
//!
//! When a core's worker has ended, its list is closed for good. Messages that lie there or come
//! later are still delivered, on no core, and dropped. So no message is leaked with what it keeps
//! alive.
//!
//! This file knows atomics only; `tests/loom_mail.rs` runs it under loom.

use std::ptr;

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The part of a message that the list needs. It is the first field of every message.
#[repr(C)]
pub(crate) struct Link {
    next: AtomicPtr<Link>,
    deliver: Deliver,
}

/// Takes over the message of the link. True: on the core it was sent to. False: on any thread,
/// because the worker of that core has ended.
pub(crate) type Deliver = unsafe fn(*mut Link, bool);

impl Link {
    pub(crate) fn new(deliver: Deliver) -> Self {
        Self { next: AtomicPtr::new(ptr::null_mut()), deliver }
    }
}

/// The first entry of a closed list: the address of no link.
const CLOSED: *mut Link = ptr::dangling_mut();

/// One core's list.
pub(crate) struct Mail {
    first: CachePadded<AtomicPtr<Link>>,
    sleeping: CachePadded<AtomicBool>,
}

impl Mail {
    /// No messages, for a core that is awake.
    pub(crate) fn new() -> Self {
        Self {
            first: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
            sleeping: CachePadded::new(AtomicBool::new(false)),
        }
    }

    /// Adds the message whose first field is `link`. True: the caller must wake the core. A closed
    /// list delivers at once.
    ///
    /// # Safety
    /// `link` is valid until it is delivered, is in no list now, and its `deliver` fits what it is
    /// part of.
    #[must_use]
    pub(crate) unsafe fn push(&self, link: *mut Link) -> bool {
        // Relaxed: the exchange below brings the order.
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            if first == CLOSED {
                // SAFETY: valid and in no list, by contract.
                unsafe { ((*link).deliver)(link, false) };
                return false;
            }
            // SAFETY: ours until it is pushed. Relaxed: published by the exchange.
            unsafe { (*link).next.store(first, Ordering::Relaxed) };
            // SeqCst: publishes the message, and comes before the look at `sleeping`.
            match self.first.compare_exchange_weak(first, link, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(present) => first = present,
            }
        }
        order_for_loom();
        // SeqCst: see the module's law. The swap lets only one of many senders pay for the system
        // call.
        self.sleeping.load(Ordering::SeqCst) && self.sleeping.swap(false, Ordering::SeqCst)
    }

    /// Says that the core is about to sleep; false when there is mail, so that it must not.
    pub(crate) fn sleep(&self) -> bool {
        // SeqCst: see the module's law.
        self.sleeping.store(true, Ordering::SeqCst);
        order_for_loom();
        if self.first.load(Ordering::SeqCst).is_null() {
            return true;
        }
        self.awake();
        false
    }

    /// Says that the core is awake.
    pub(crate) fn awake(&self) {
        // Relaxed: a sender that still sees it asleep only writes the eventfd in vain.
        self.sleeping.store(false, Ordering::Relaxed);
    }

    /// Whether the core sleeps.
    pub(crate) fn is_asleep(&self) -> bool {
        // Relaxed: a look from outside.
        self.sleeping.load(Ordering::Relaxed)
    }

    /// Whether there is mail.
    pub(crate) fn has_mail(&self) -> bool {
        // Relaxed: a hint; `deliver_all` acquires.
        !self.first.load(Ordering::Relaxed).is_null()
    }

    /// Delivers all mail, in the order it was sent. By the core's worker, until the list is
    /// closed.
    pub(crate) fn deliver_all(&self) {
        if self.has_mail() {
            // Acquire: what the senders wrote is seen.
            deliver(self.first.swap(ptr::null_mut(), Ordering::Acquire), true);
        }
    }

    /// Closes the list: the core's worker has ended, or never began. To be called once.
    pub(crate) fn close(&self) {
        // Acquire: as above.
        deliver(self.first.swap(CLOSED, Ordering::Acquire), false);
    }
}

/// Loom takes SeqCst accesses for acquiring and releasing ones. A fence gives them their order. So
/// loom does not check that these accesses are SeqCst.
#[inline(always)]
fn order_for_loom() {
    #[cfg(loom)]
    sync::atomic::fence(Ordering::SeqCst);
}

/// Delivers a list taken out, whose newest link comes first, in the order it was sent.
fn deliver(mut newest: *mut Link, on_core: bool) {
    let mut oldest: *mut Link = ptr::null_mut();
    while !newest.is_null() {
        // SAFETY: links in the list are valid until delivered, and the list is ours alone now.
        unsafe {
            let next = (*newest).next.load(Ordering::Relaxed);
            (*newest).next.store(oldest, Ordering::Relaxed);
            oldest = newest;
            newest = next;
        }
    }
    while !oldest.is_null() {
        // SAFETY: as above; `next` is read before the delivery, after which the link may be gone.
        unsafe {
            let next = (*oldest).next.load(Ordering::Relaxed);
            ((*oldest).deliver)(oldest, on_core);
            oldest = next;
        }
    }
}
