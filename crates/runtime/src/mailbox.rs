//! A core's mailbox, by which other cores and threads send it messages. It is a lock-free list that
//! the core takes whole, and an eventfd that a sender writes only when the core sleeps.
//!
//! A message embeds a [`Link`] as its first field, so a wake-up allocates nothing. Law of the
//! sleeper: the core stores that it sleeps, then tests its mailbox again. A sender pushes, then
//! tests whether the core sleeps. Both steps are SeqCst, so one of the two sees the other.
//!
//! When a core's worker has ended, its mailbox is closed for good. Messages that lie there or come
//! later are still delivered, on no core, and dropped. So no message is leaked with what it keeps
//! alive.

use std::io;
use std::ptr;

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::os;

/// The part of a message that the mailbox needs. It is the first field of every message.
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

/// The first entry of a closed mailbox's list: the address of no link.
const CLOSED: *mut Link = ptr::dangling_mut();

/// One core's mailbox.
pub(crate) struct Mailbox {
    first: CachePadded<AtomicPtr<Link>>,
    sleeping: CachePadded<AtomicBool>,
    event: os::Descriptor,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            first: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
            sleeping: CachePadded::new(AtomicBool::new(false)),
            event: os::poll::eventfd()?,
        })
    }

    /// The eventfd to poll while sleeping.
    pub(crate) fn event(&self) -> &os::Descriptor {
        &self.event
    }

    /// Sends the message whose first field is `link`, and wakes the core if it sleeps. A closed
    /// mailbox delivers at once.
    ///
    /// # Safety
    /// `link` is valid until it is delivered, is in no mailbox now, and its `deliver` fits what it
    /// is part of.
    pub(crate) unsafe fn push(&self, link: *mut Link) {
        // Relaxed: the exchange below brings the order.
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            if first == CLOSED {
                // SAFETY: valid and in no mailbox, by contract.
                return unsafe { ((*link).deliver)(link, false) };
            }
            // SAFETY: ours until it is pushed. Relaxed: published by the exchange.
            unsafe { (*link).next.store(first, Ordering::Relaxed) };
            // SeqCst: publishes the message, and comes before the look at `sleeping`.
            match self.first.compare_exchange_weak(first, link, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => break,
                Err(present) => first = present,
            }
        }
        self.wake();
    }

    /// Wakes the core if it sleeps.
    pub(crate) fn wake(&self) {
        // SeqCst: see the module's law. The swap lets only one of many senders pay for the system
        // call.
        if self.sleeping.load(Ordering::SeqCst) && self.sleeping.swap(false, Ordering::SeqCst) {
            os::poll::signal(&self.event);
        }
    }

    /// Says that the core is about to sleep; false when there is mail, so that it must not.
    pub(crate) fn sleep(&self) -> bool {
        // SeqCst: see the module's law.
        self.sleeping.store(true, Ordering::SeqCst);
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

    /// Delivers all mail, in the order it was sent. By the core's worker, until the mailbox is
    /// closed.
    pub(crate) fn deliver_all(&self) {
        if self.has_mail() {
            // Acquire: what the senders wrote is seen.
            deliver(self.first.swap(ptr::null_mut(), Ordering::Acquire), true);
        }
    }

    /// Closes the mailbox: the core's worker has ended, or never began. To be called once.
    pub(crate) fn close(&self) {
        // Acquire: as above.
        deliver(self.first.swap(CLOSED, Ordering::Acquire), false);
    }
}

/// Delivers a list taken out of a mailbox, whose newest link comes first, in the order it was sent.
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

/// A boxed message: a closure for the loop of the core.
#[repr(C)]
struct Letter {
    link: Link,
    action: Box<dyn FnOnce() + Send>,
}

/// Sends a closure that the core's loop runs (on the worker's stack: it must not park). It is
/// dropped when that has ended.
pub(crate) fn send(to: &Mailbox, action: impl FnOnce() + Send + 'static) {
    let letter = Box::new(Letter { link: Link::new(open), action: Box::new(action) });
    // SAFETY: the box is valid until `open` takes it back, it is new, and `open` fits a `Letter`.
    unsafe { to.push(Box::into_raw(letter).cast()) };
}

/// # Safety
/// `link` is the first field of a `Letter` from [`send`], delivered once.
unsafe fn open(link: *mut Link, on_core: bool) {
    // SAFETY: by contract, a box given away by `send`; `repr(C)` puts the link first.
    let letter = unsafe { Box::from_raw(link.cast::<Letter>()) };
    if on_core {
        (letter.action)();
    }
}
