//! A core's mailbox, by which other cores and threads send it messages. It is a list ([`Mail`]),
//! and an eventfd that a sender writes only when the core sleeps.

use std::io;

use crate::mail::{Link, Mail};
use crate::os;

/// One core's mailbox.
pub(crate) struct Mailbox {
    mail: Mail,
    event: os::Descriptor,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { mail: Mail::new(), event: os::poll::eventfd()? })
    }

    /// The eventfd to poll while sleeping.
    pub(crate) fn event(&self) -> &os::Descriptor {
        &self.event
    }

    /// The list.
    pub(crate) fn mail(&self) -> &Mail {
        &self.mail
    }

    /// Sends the message whose first field is `link`, and wakes the core if it sleeps. A closed
    /// mailbox delivers at once.
    ///
    /// # Safety
    /// As of [`Mail::push`].
    pub(crate) unsafe fn push(&self, link: *mut Link) {
        // SAFETY: by contract.
        if unsafe { self.mail.push(link) } {
            os::poll::signal(&self.event);
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
