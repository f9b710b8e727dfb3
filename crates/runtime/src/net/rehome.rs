//! Sessions that move from one core to another while they wait for their client.
//!
//! A core that has been much busier than another one gives it sessions ([`crate::load`]). It gives
//! those that wait for it at that moment: they have input, and no fiber serves them. A session that
//! is idle gains nothing by a move. What must hold:
//!
//! 1. Only a session between two messages moves, and only if nothing of it lives on its core. No
//!    fiber serves it, nothing of it waits to be sent, and no received bytes lie in the core's
//!    slots. Its handler agrees ([`super::Serve::may_leave_core`]).
//! 2. A session keeps its interrupt. A raise sets the reason first and then wakes the core that the
//!    interrupt names. The new core puts its name there and then serves the session once, whether
//!    or not bytes have come. So a reason raised on the way is obeyed there.
//! 3. A session stays where it came to for [`REST`]. So it does not go back and forth with a load
//!    that does.

use std::rc::Rc;
use std::time::Duration;

use sync::atomic::Ordering;

use super::session::Session;
use super::{Net, here};
use crate::fiber::core;
use crate::load::WHOLE;
use crate::shared::Turns;
use crate::{mailbox, os, time, timer};

/// How long a session stays at least on a core to which it was moved.
const REST: Duration = Duration::from_secs(10);
/// Pause before a core looks again, where no session that may move waited for it.
const PAUSE: Duration = Duration::from_millis(4);

/// The sessions that a core gives away.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Picked {
    /// So many, of [`WHOLE`], of those that wait for the core. It looks for them until then.
    Waiting { share: u64, until: u64 },
    /// Every session that may move, for tests.
    All,
}

impl Net {
    /// Gives sessions to another core.
    pub(crate) fn give_away(&self, to: usize, picked: Picked) {
        // Relaxed: a flag. A core that has not heard of it yet must send nothing to one that has
        // gone.
        if self.draining.get() || self.shared.draining.load(Ordering::Relaxed) {
            return;
        }
        match picked {
            Picked::All => {
                let all: Vec<_> =
                    self.slots.borrow().iter().filter_map(|slot| slot.session.clone()).collect();
                let gone = all.into_iter().filter(|session| self.give(session, to));
                self.forget(gone.map(|session| Rc::as_ptr(&session)).collect());
            }
            Picked::Waiting { until, .. } if time::now() > until => {}
            Picked::Waiting { share, .. } => {
                if !self.give_waiting(to, share) {
                    timer::after(PAUSE, move || here().give_away(to, picked));
                }
            }
        }
    }

    /// Gives this share of the sessions that wait for the core; false where none of them may move.
    fn give_waiting(&self, to: usize, share: u64) -> bool {
        let ready: Vec<_> = self.ready.borrow().iter().cloned().collect();
        // Fibers that can run are statements that take time. One of them is enough for the core.
        let waiting = ready.len() + core::here().ready_fibers();
        if waiting < 2 {
            return false; // it would be alone there, as it is now
        }
        // Rounded: a core is never wholly idle, so the share of an even division is just below it.
        let most = ((waiting * share as usize + WHOLE as usize / 2) / WHOLE as usize).min(waiting / 2);
        let rested = |session: &Rc<Session>| {
            session.came.get().is_none_or(|came| time::now() - came >= REST.as_nanos() as u64)
        };
        let gone = ready.into_iter().filter(rested).filter(|session| self.give(session, to));
        let gone: Vec<_> = gone.map(|session| Rc::as_ptr(&session)).take(most).collect();
        let has_given = !gone.is_empty();
        self.forget(gone);
        has_given
    }

    /// Takes sessions that have gone out of those that are ready.
    fn forget(&self, mut gone: Vec<*const Session>) {
        gone.sort_unstable();
        self.ready.borrow_mut().retain(|one| gone.binary_search(&Rc::as_ptr(one)).is_err());
    }

    /// Gives a session to another core; false if it may not move. The caller takes it out of those
    /// that are ready.
    fn give(&self, session: &Rc<Session>, to: usize) -> bool {
        if !session.may_move() {
            return false;
        }
        let Some(mut handler) = session.handler.take() else { return false };
        // The last step that can fail comes before the handler prepares to leave.
        let socket = handler.may_leave_core().then(|| os::socket::duplicate(session.descriptor()).ok());
        let Some(socket) = socket.flatten() else {
            session.handler.set(Some(handler));
            return false;
        };
        handler.leave_core();
        let mut moved = session.depart(socket, handler, session.partial.take());
        moved.interrupt = Some(session.interrupt.clone());
        let shared = &self.shared;
        // It is counted there before it is no longer counted here, so that no sum of the cores
        // misses it.
        shared.note_came(to);
        self.detach(session);
        Turns::add(&shared.turns.get(self.core).moved_out, 1);
        mailbox::send(shared.mailbox(to), move || {
            let net = here();
            Turns::add(&net.shared.turns.get(net.core).moved_in, 1);
            net.attach(moved);
        });
        true
    }
}
