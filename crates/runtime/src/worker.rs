//! One worker's loop: a core's, or the service worker's, which accepts connections and lets clients
//! in.
//!
//! A turn: poll events, deliver mail, fire timers, run the fibers that can run, serve the sessions
//! that have input. Then it runs the fibers that wait for the turn's end, submits operations on
//! files, and sends the replies. The worker joins its core's fibers, timers, sockets and files;
//! none of them knows it. Everything here is touched by this worker's thread alone. What must hold:
//!
//! 1. The loop sleeps only when no fiber is ready, no session waits to be served and no mail lies
//!    there.
//! 2. Every turn polls and ends: a fiber that yields for ever, or a client that sends for ever,
//!    starves nobody.
//! 3. A session that waits for its client has no fiber.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use sync::atomic::Ordering;

use crate::aside::{self, Threads};
use crate::fiber::core::{Core, contain};
use crate::file::Disk;
use crate::net::{self, Net};
use crate::reactor::{Reactor, Ready};
use crate::shared::{Shared, Turns};
use crate::{os, time, timer};

/// The state of one worker.
pub(crate) struct Worker {
    core: Core,
    net: Net,
    disk: Disk,
    reactor: Rc<Reactor>,
    aside: Arc<Threads>,
    /// Smoothed length of the gaps between running dry and the next work.
    gap: Cell<u64>,
}

impl Worker {
    pub(crate) fn new(core: usize, shared: Arc<Shared>, disk: Disk, aside: Arc<Threads>) -> io::Result<Self> {
        time::begin_turn();
        let reactor = Rc::new(Reactor::new(shared.mailbox(core).event())?);
        if let Some(event) = disk.event() {
            reactor.watch_disk(event)?;
        }
        // An operator who wants no ring for files wants none for sockets.
        let net = Net::new(core, &shared, &reactor, disk.event().is_some());
        let core = Core::new(core, shared, net::send_replies);
        Ok(Self { core, net, disk, reactor, aside, gap: Cell::new(u64::MAX / 16) })
    }

    /// Whether it sends to and receives from many sockets by one system call.
    pub(crate) fn is_batched(&self) -> bool {
        self.net.is_batched()
    }

    /// The loop, until the runtime says exit and nothing runs any more (or the grace time is over).
    pub(crate) fn run(&self) {
        self.core.enter();
        self.net.enter();
        self.disk.enter();
        timer::begin();
        aside::install(Some(Arc::clone(&self.aside)));
        let shared = &self.core.shared;
        let turns = shared.turns.get(self.core.number);
        let mut turn = 0;
        while !self.may_exit() {
            self.poll();
            turn += 1;
            // Relaxed: the watchdog asks whether it changes, and readers want no order.
            turns.count.store(turn, Ordering::Relaxed);
            turns.fibers.store(self.core.fibers(), Ordering::Relaxed);
            shared.mailbox(self.core.number).mail().deliver_all();
            self.fire_timers();
            let fibers = self.core.ready_fibers();
            self.core.run_ready();
            self.core.start_jobs();
            let sessions = self.net.begin_serving();
            Turns::add(&turns.served, sessions);
            Turns::add(&turns.waited, fibers + sessions);
            self.core.run_while(|| self.net.has_due(), net::serve_round);
            self.core.run_last();
            self.disk.submit();
            self.net.send_replies();
        }
        self.net.close_all();
        timer::end();
        aside::install(None);
        self.core.leave();
        self.net.leave();
        self.disk.leave();
        time::set_turn(0);
    }

    fn may_exit(&self) -> bool {
        let shared = &self.core.shared;
        // Acquire: what was asked before the exit is seen.
        if !shared.exiting.load(Ordering::Acquire) {
            return false;
        }
        let quiet =
            self.core.is_idle() && !self.has_work() && !shared.mailbox(self.core.number).mail().has_mail();
        // Relaxed: only the number.
        quiet || time::precise() >= shared.exit_deadline.load(Ordering::Relaxed)
    }

    fn has_work(&self) -> bool {
        self.core.has_work() || self.net.has_ready()
    }

    /// Whether there is anything to do before the worker may wait for events.
    fn is_busy(&self) -> bool {
        let mailbox = self.core.shared.mailbox(self.core.number);
        self.has_work() || mailbox.mail().has_mail() || self.disk.has_completions()
    }

    fn poll(&self) {
        if self.is_busy() {
            self.take_events(Some(0));
            time::begin_turn();
            return;
        }
        let began = time::begin_turn();
        let turns = self.core.shared.turns.get(self.core.number);
        turns.idle.begin(began);
        let deadline = timer::next_deadline();
        let (gap, longest) = (self.gap.get(), self.core.shared.poll_nanos);
        // Polling pays only while work usually comes before it would end.
        if !(gap <= longest / 2 && self.poll_actively(began, (2 * gap).min(longest), deadline)) {
            self.sleep(began, deadline);
        }
        // A new gap has the weight 1/8, so one lull does not end polling and one burst does not
        // start it.
        let ended = time::begin_turn();
        turns.idle.end(ended);
        let lasted = ended - began;
        self.gap.set(gap - gap / 8 + lasted / 8);
    }

    /// Takes events and passes them on; whether there were any. `None` waits without limit.
    fn take_events(&self, timeout: Option<i32>) -> bool {
        let events = self.reactor.poll(timeout, |ready| match ready {
            Ready::Listener(token) => self.net.accept(token),
            Ready::Session(key, events) => self.net.event(key, events),
        });
        Turns::add(&self.core.shared.turns.get(self.core.number).events, events);
        self.disk.complete();
        events > 0
    }

    /// Polls without sleeping; false when the time is over and nothing came.
    fn poll_actively(&self, began: u64, budget: u64, deadline: Option<u64>) -> bool {
        let until = deadline.unwrap_or(u64::MAX).min(began + budget);
        loop {
            if self.take_events(Some(0)) || self.core.shared.mailbox(self.core.number).mail().has_mail() {
                return true;
            }
            if self.disk.has_completions() || time::begin_turn() >= until {
                return self.disk.has_completions();
            }
            os::thread::yield_now();
        }
    }

    fn sleep(&self, now: u64, deadline: Option<u64>) {
        let shared = &self.core.shared;
        let mut deadline = deadline;
        // Acquire: see `may_exit`.
        if shared.exiting.load(Ordering::Acquire) {
            // Relaxed: only the number.
            let exit = shared.exit_deadline.load(Ordering::Relaxed);
            deadline = Some(deadline.map_or(exit, |deadline| deadline.min(exit)));
        }
        let left = deadline.map(|deadline| deadline.saturating_sub(now));
        // Whole milliseconds, rounded up: a timer may be late by one, never early.
        let timeout = left.map(|nanos| i32::try_from(nanos.div_ceil(1_000_000)).unwrap_or(i32::MAX));
        let mailbox = shared.mailbox(self.core.number);
        if mailbox.mail().sleep() {
            Turns::add(&shared.turns.get(self.core.number).sleeps, 1);
            self.take_events(timeout);
            mailbox.mail().awake();
        }
    }

    fn fire_timers(&self) {
        let now = time::now();
        while let Some(action) = timer::due(now) {
            contain("a timer", action);
        }
    }
}
