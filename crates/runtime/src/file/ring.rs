//! One core's io_uring. One system call at a turn's end submits the turn's operations. Completions
//! signal an eventfd in the core's epoll set.
//!
//! An entry carries the address of its ticket, which lies on the stack of the waiting fiber. What
//! must hold: the fiber does not leave before its last completion, so the address is valid.

use std::cell::{Cell, RefCell};
use std::io;
use std::ptr;

use crate::device::Operation;
use crate::fiber::Fiber;
use crate::os::{self, Descriptor, Fd, ring};

/// Entries of the submission queue: more operations in one turn are submitted in several calls.
const ENTRIES: u32 = 256;

pub(super) struct Ring {
    ring: RefCell<ring::Ring>,
    event: Descriptor,
    /// Entries pushed and not submitted.
    queued: Cell<usize>,
    /// Operations whose completion has not been seen.
    in_flight: Cell<usize>,
}

/// A fiber that waits for several operations.
struct Wait {
    left: Cell<usize>,
    fiber: *const Fiber,
}

/// One operation of a [`Wait`].
struct Ticket {
    result: *mut i32,
    wait: *const Wait,
}

impl Ring {
    /// A ring, if the kernel grants one that can do what is needed.
    pub(super) fn new() -> io::Result<Self> {
        let event = os::poll::eventfd()?;
        let ring = ring::Ring::for_files(ENTRIES, &event)?;
        Ok(Self { ring: RefCell::new(ring), event, queued: Cell::new(0), in_flight: Cell::new(0) })
    }

    pub(super) fn event(&self) -> Fd {
        os::id(&self.event)
    }

    /// Runs the operations and parks `fiber`, which calls, until all have ended.
    pub(super) fn run_all(&self, fiber: &Fiber, operations: &[Operation], results: &mut [i32]) {
        // Nothing may unwind from here once the kernel knows of our stack, so what a park asserts
        // is asserted before.
        fiber.assert_may_suspend();
        let wait = Wait { left: Cell::new(operations.len()), fiber };
        let start = |operation: &Operation, result: &mut i32, ticket: &mut Option<Ticket>| {
            let ticket = ticket.insert(Ticket { result, wait: &wait });
            self.push(operation, ptr::from_mut(ticket) as u64);
        };
        let mut one = None;
        let mut many = Vec::new();
        if let ([operation], [result]) = (operations, &mut *results) {
            start(operation, result, &mut one);
        } else {
            many.resize_with(operations.len(), || None);
            for ((operation, result), ticket) in operations.iter().zip(results).zip(&mut many) {
                start(operation, result, ticket);
            }
        }
        while wait.left.get() > 0 {
            fiber.park();
        }
    }

    fn push(&self, operation: &Operation, tag: u64) {
        loop {
            // SAFETY: the caller waits for the completion, so the buffer stays valid until then.
            if unsafe { self.ring.borrow_mut().push(operation, tag) } {
                self.queued.set(self.queued.get() + 1);
                self.in_flight.set(self.in_flight.get() + 1);
                return;
            }
            self.submit();
        }
    }

    /// Gives the kernel what is queued. When it can't take it now (out of memory), the next turn
    /// tries again.
    pub(super) fn submit(&self) {
        if self.queued.get() == 0 {
            return;
        }
        if let Ok(taken) = self.ring.borrow().submit() {
            self.queued.set(self.queued.get() - taken.min(self.queued.get()));
        }
    }

    pub(super) fn has_completions(&self) -> bool {
        if self.in_flight.get() == 0 {
            return false;
        }
        // Entries that could not be submitted keep the loop awake, too.
        self.queued.get() > 0 || self.ring.borrow_mut().has_completions()
    }

    /// Takes all completions and wakes the fibers that wait for them.
    pub(super) fn complete(&self) {
        if self.in_flight.get() == 0 {
            return;
        }
        let mut ring = self.ring.borrow_mut();
        let mut seen = 0;
        for (tag, result) in ring.completions() {
            seen += 1;
            // SAFETY: the address of a ticket whose fiber waits for this completion; each completes
            // once.
            let ticket = unsafe { &*(tag as *const Ticket) };
            // SAFETY: as for the ticket: result and wait lie in frames of the same waiting fiber,
            // on this thread.
            let wait = unsafe {
                *ticket.result = result;
                &*ticket.wait
            };
            wait.left.set(wait.left.get() - 1);
            if wait.left.get() == 0 {
                // SAFETY: the fiber waits, so it is alive.
                unsafe { &*wait.fiber }.notify_on_core();
            }
        }
        self.in_flight.set(self.in_flight.get() - seen);
    }
}
