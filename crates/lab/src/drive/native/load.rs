//! The load loop of one thread.
//!
//! Each turn begins the transactions and timers that are due, then waits for sockets or the next
//! due time. Then it serves every socket that has data: receive, decode, step its client, send. It
//! watches sockets by edges, so that a served socket costs nothing in the next wait. A receive that
//! fills less than the buffer has emptied its socket. [`link`] holds the connections that clients
//! set up and end while the load runs; [`failure`] handles errors. A thread with one client that
//! waits for an answer has nothing else to watch. It waits in the receive itself, which spares it a
//! third of its system calls.
//!
//! What must hold:
//! 1. The loop allocates nothing once the clients' buffers are warm, except for connections that
//!    clients set up.
//! 2. A client waits for at most one thing (see [`Doing`]), and is in at most one place: under way,
//!    in `timers`, or in `free`.
//! 3. The loop reads the time once for each socket it serves. A transaction's end and the next
//!    one's beginning happen at that time.

mod failure;
mod link;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use rustix::thread::set_current_timer_slack;

use super::arrivals::{Schedule, Share};
use super::connect::{Connection, Peer};
use super::tally::Tally;
use crate::arm::Dialect;
use crate::client::{Client, Params, Random, StatementId, Step, Turn};
use crate::drive::wire::{Answer, Progress, Wire};
use crate::drive::{Live, Phase, cpu_since, cpu_time};
use crate::load::{Load, Pace};
use crate::workload::Workload;
use link::{Link, wait_on};

/// Bytes of one receive; more than the answers to a pipeline of point reads.
const INPUT: usize = 1 << 16;
/// Sockets served between two checks of timers and arrivals.
const BATCH: usize = 256;
/// Longest interval between two checks of the stop flag, in nanoseconds.
const LOOK: u64 = 20_000_000;
/// The kernel's figures of the calling thread.
const THIS_THREAD: &str = "/proc/thread-self/stat";
const WATCHED: epoll::EventFlags =
    epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);

/// The parts of a round that all threads share. Times are nanoseconds since its beginning.
pub(super) struct Round<'a> {
    load: &'a Load,
    threads: usize,
    workload: &'a dyn Workload,
    peer: Peer,
    /// Errors that the workload tolerates, by their codes.
    tolerated: &'static [&'static str],
    ramp: u64,
    /// When counting begins, and when the round ends.
    counted: (u64, u64),
}

impl<'a> Round<'a> {
    pub(super) fn new(
        load: &'a Load,
        threads: usize,
        workload: &'a dyn Workload,
        dialect: Dialect,
        peer: Peer,
    ) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        let ramp = nanos(load.ramp);
        let from = ramp + nanos(load.warmup);
        let counted = (from, from + nanos(load.measured));
        let tolerated = workload.tolerated(dialect);
        Self { load, threads, workload, peer, tolerated, ramp, counted }
    }
}

/// The thing a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// For its first or next transaction, in `timers` or in `free`.
    Between,
    /// For the end of a sleep, in `timers`.
    Sleeping,
    /// For a connection; in `timers` where the server's queue is full.
    Connecting,
    /// For an answer that the client wants.
    Answer,
    /// For the answers to what was queued; then a transaction of this kind is over.
    Ending(u8),
    /// For the answer to a ROLLBACK, and what follows it.
    RollingBack(After),
}

/// The step after a failed transaction's rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// The client tries the transaction again with the same choices.
    Again,
    /// The client begins a new transaction with other choices; this one does not count as given up.
    Anew,
    /// The client gives the transaction up.
    Next,
}

struct ClientSlot<W: Wire> {
    link: Link<W>,
    /// The session of the present connection, or of the last one.
    session: W::Session,
    client: Box<dyn Client>,
    answer: Answer,
    doing: Doing,
    /// The statements sent since the last answer.
    sent: Vec<StatementId>,
    /// When its transaction began or, in an open loop, arrived.
    begun: u64,
    /// The number of this try.
    tries: u32,
    /// Received bytes of an incomplete message.
    rest: Vec<u8>,
}

pub(super) struct Thread<'a, W: Wire> {
    wire: &'a W,
    round: &'a Round<'a>,
    number: usize,
    epoll: OwnedFd,
    slots: Vec<ClientSlot<W>>,
    /// The number of clients that are not lost.
    alive: usize,
    /// The thread has one client, and waits in a receive on its socket.
    alone: bool,
    /// Due times of clients that sleep or pause, soonest first.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Clients that wait for an arrival, longest first (open loop).
    free: VecDeque<u32>,
    schedule: Option<Schedule>,
    random: Random,
    params: Params,
    input: Vec<u8>,
    out: BytesMut,
    tally: Tally,
    /// Transactions done since the beginning.
    done: u64,
}

impl<'a, W: Wire> Thread<'a, W> {
    pub(super) fn new(
        wire: &'a W,
        round: &'a Round<'a>,
        number: usize,
        slots: Vec<(Connection<W>, Box<dyn Client>)>,
    ) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let count = slots.len();
        let alone = match slots.as_slice() {
            [(connection, _)] => wait_on(&connection.socket).is_ok(),
            _ => false,
        };
        let mut timers = BinaryHeap::with_capacity(count);
        for (place, (connection, _)) in slots.iter().enumerate() {
            epoll::add(&epoll, &connection.socket, epoll::EventData::new_u64(place as u64), WATCHED)?;
            let client = number + place * round.threads;
            timers.push(Reverse((
                (round.ramp as f64 * client as f64 / round.load.clients as f64) as u64,
                place as u32,
            )));
        }
        let slot = |(connection, client): (Connection<W>, Box<dyn Client>)| ClientSlot {
            link: Link::Up(connection.socket),
            session: connection.session,
            client,
            answer: Answer::default(),
            doing: Doing::Between,
            sent: Vec::new(),
            begun: 0,
            tries: 1,
            rest: Vec::new(),
        };
        let schedule = match round.load.pace {
            Pace::Closed { .. } => None,
            Pace::Open { from, to, arrivals } => {
                let random = Random::new(round.load.seed, (round.threads + number) as u64);
                let share = Share { thread: number, threads: round.threads, clients: round.load.clients };
                Some(Schedule::new((from, to), round.counted.1, arrivals, share, random))
            }
        };
        Ok(Self {
            wire,
            round,
            number,
            epoll,
            slots: slots.into_iter().map(slot).collect(),
            alive: count,
            alone,
            timers,
            free: VecDeque::with_capacity(count),
            tally: Tally::new(round.workload.kinds().len(), round.counted, round.load.pace),
            schedule,
            random: Random::new(round.load.seed, number as u64),
            params: Params::default(),
            input: Vec::with_capacity(INPUT),
            out: BytesMut::with_capacity(INPUT),
            done: 0,
        })
    }

    /// Runs the round, which began at `origin`.
    pub(super) fn run(mut self, origin: Instant, live: &Live) -> Tally {
        let clock = || origin.elapsed().as_nanos() as u64;
        // The kernel's default lets a wait end 50 µs late. If this call fails, `own_lag` shows the
        // lateness.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let (from, end) = self.round.counted;
        let mut events = Vec::with_capacity(BATCH);
        let mut worked = None;
        let mut now = clock();
        while now < end && self.alive > 0 && !live.is_stopped() {
            if worked.is_none() && now >= from {
                worked = Some(cpu_time(THIS_THREAD));
                live.enter(Phase::Measuring);
            }
            self.begin_due(now);
            if self.waits_alone() {
                self.serve(0, epoll::EventFlags::IN, RecvFlags::empty(), &clock);
            } else {
                let wait = Timespec { tv_sec: 0, tv_nsec: self.wait(now) as i64 };
                events.clear();
                match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                    Ok(_) | Err(Errno::INTR) => (),
                    Err(error) => {
                        self.tally.lost(|| format!("waiting for sockets: {error}"));
                        break;
                    }
                }
                for event in &events {
                    self.serve(event.data.u64() as usize, event.flags, RecvFlags::DONTWAIT, &clock);
                    if self.schedule.is_some() {
                        self.begin_arrived(clock());
                    }
                }
            }
            live.publish(self.number, self.done);
            now = clock();
        }
        if self.alive > 0 {
            live.enter(Phase::Over);
        }
        if let Some(before) = worked {
            self.tally.counts.client_cpu = cpu_since(before, THIS_THREAD);
        }
        self.tally.end(now, self.schedule.take());
        if self.alive > 0 {
            live.hold();
        }
        self.part();
        self.tally
    }

    /// Wakes clients whose time has come and gives arrivals to free clients.
    fn begin_due(&mut self, now: u64) {
        // A client that falls due again at once has its turn after the sockets.
        for _ in 0..self.timers.len() {
            match self.timers.peek() {
                Some(&Reverse((due, _))) if due <= now => (),
                _ => break,
            }
            let Some(Reverse((_, place))) = self.timers.pop() else { break };
            let place = place as usize;
            self.wake(place, now);
        }
        self.begin_arrived(now);
    }

    /// Gives due arrivals to free clients.
    fn begin_arrived(&mut self, now: u64) {
        while self.schedule.as_ref().and_then(|one| one.due).is_some_and(|due| due <= now) {
            let Some(place) = self.free.pop_front() else { break };
            let place = place as usize;
            if !self.slots[place].link.is_lost() && self.next_transaction(place, now, true) {
                self.advance(place, now);
            }
        }
    }

    /// Wakes a client from `timers`.
    fn wake(&mut self, place: usize, now: u64) {
        let slot = &mut self.slots[place];
        match slot.doing {
            _ if slot.link.is_lost() => (),
            Doing::Connecting => self.connect(place, now),
            Doing::Sleeping => self.advance(place, now),
            _ => {
                if self.next_transaction(place, now, false) {
                    self.advance(place, now);
                }
            }
        }
    }

    /// The time until something is due, in nanoseconds.
    fn wait(&self, now: u64) -> u64 {
        let mut until = (now + LOOK).min(self.round.counted.1);
        if let Some(Reverse((due, _))) = self.timers.peek() {
            until = until.min(*due);
        }
        if let Some(due) = self.schedule.as_ref().and_then(|one| one.due)
            && !self.free.is_empty()
        {
            until = until.min(due);
        }
        until.saturating_sub(now)
    }

    /// Begins the client's next transaction if it is due now; otherwise arranges its later begin.
    /// The client has been `free`, or becomes so now.
    fn next_transaction(&mut self, place: usize, now: u64, free: bool) -> bool {
        let slot = &mut self.slots[place];
        slot.doing = Doing::Between;
        slot.tries = 1;
        slot.answer.reply.clear();
        let Some(schedule) = &mut self.schedule else {
            slot.begun = now;
            return true;
        };
        match schedule.take(now) {
            Some(due) => {
                slot.begun = due;
                self.tally.begun(due, now, free);
                true
            }
            None => {
                self.free.push_back(place as u32);
                false
            }
        }
    }

    /// Ends a transaction, done or failed; returns whether the client begins the next at once.
    fn pause(&mut self, place: usize, now: u64) -> bool {
        match self.round.load.pace {
            Pace::Closed { think } if !think.is_zero() => {
                self.slots[place].doing = Doing::Between;
                self.timers.push(Reverse((now + think.as_nanos() as u64, place as u32)));
                false
            }
            _ => self.next_transaction(place, now, false),
        }
    }

    /// Steps a client until it waits for something, and sends its output.
    fn advance(&mut self, place: usize, now: u64) {
        self.out.clear();
        let mut over = false;
        loop {
            self.params.clear();
            let slot = &mut self.slots[place];
            let turn = Turn { random: &mut self.random, params: &mut self.params, reply: &slot.answer.reply };
            match slot.client.next(turn) {
                Step::Run(id) => {
                    let wait = !self.round.load.pipeline;
                    slot.answer.reply.clear();
                    self.wire.encode(&mut slot.session, id, &self.params, wait, &mut self.out);
                    slot.sent.push(id);
                    if wait {
                        slot.doing = Doing::Answer;
                        break;
                    }
                }
                Step::Sleep(time) => {
                    self.idle(place, Doing::Sleeping, now + time.as_nanos() as u64);
                    break;
                }
                Step::Connect => return self.connect(place, now),
                Step::Leave => self.leave(place),
                Step::Done(kind) => {
                    if !slot.sent.is_empty() {
                        self.wire.sync(&mut self.out);
                        slot.doing = Doing::Ending(kind);
                        break;
                    }
                    if !self.over(place, kind, now) {
                        break;
                    }
                    // A client whose transactions send nothing must not keep the thread from the
                    // others.
                    if std::mem::replace(&mut over, true) && self.out.is_empty() {
                        self.idle(place, Doing::Sleeping, now);
                        break;
                    }
                }
                Step::Abort(why) => {
                    self.lose(place, || why.into_owned());
                    return;
                }
            }
        }
        self.send(place);
    }

    /// Puts the client into `timers` until this time.
    fn idle(&mut self, place: usize, doing: Doing, until: u64) {
        let slot = &mut self.slots[place];
        slot.doing = doing;
        slot.answer.reply.clear();
        self.timers.push(Reverse((until, place as u32)));
    }

    /// Counts a transaction as done; returns whether the client begins the next at once. A client
    /// that leaves the server's transaction open has done none: all its work would be one
    /// transaction.
    fn over(&mut self, place: usize, kind: u8, now: u64) -> bool {
        let slot = &self.slots[place];
        let begun = slot.begun;
        if slot.link.is_up() && self.wire.in_transaction(&slot.session) {
            self.lose(place, || "end of script reached without completing the last transaction".to_owned());
            return false;
        }
        self.done += 1;
        self.tally.done(kind, begun, now);
        self.pause(place, now)
    }

    /// Whether the thread waits only for the answer to its only client.
    fn waits_alone(&self) -> bool {
        // In a closed loop a client that waits for a time is in `timers`.
        self.alone && self.timers.is_empty() && self.schedule.is_none() && self.slots[0].link.is_up()
    }

    /// Receives from a socket, under the `waiting` flags for the first receive.
    fn serve(
        &mut self,
        place: usize,
        flags: epoll::EventFlags,
        waiting: RecvFlags,
        clock: &impl Fn() -> u64,
    ) {
        if matches!(self.slots[place].link, Link::Rising(_)) {
            return self.rise(place, clock());
        }
        while let Link::Up(socket) = &self.slots[place].link {
            self.input.clear();
            let received = match net::recv(socket, spare_capacity(&mut self.input), waiting) {
                Ok((0, _)) | Err(Errno::CONNRESET) => {
                    return self.lose(place, || "the server closed the connection".to_owned());
                }
                Ok((received, _)) => received,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(error) => return self.lose(place, || format!("the connection broke: {error}")),
            };
            self.take(place, clock());
            let at_end = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            if received < self.input.capacity() && !flags.intersects(at_end) {
                return;
            }
        }
    }

    /// Handles received bytes.
    fn take(&mut self, place: usize, now: u64) {
        let input = std::mem::take(&mut self.input);
        let mut rest = std::mem::take(&mut self.slots[place].rest);
        let kept = !rest.is_empty();
        if kept {
            rest.extend_from_slice(&input);
        }
        let bytes = if kept { &rest } else { &input };
        let mut used = 0;
        while self.slots[place].link.is_up() {
            let slot = &mut self.slots[place];
            self.out.clear();
            let (taken, progress) =
                self.wire.decode(&mut slot.session, &bytes[used..], &mut slot.answer, &mut self.out);
            used += taken;
            self.send(place);
            match progress {
                Progress::More => break,
                Progress::Replied => self.answered(place, now),
                Progress::Failed => self.failed(place, now),
                Progress::Ended => {
                    self.tally.error(&self.slots[place].answer.failure, false, now, String::new);
                    self.lose_by_failure(place, None);
                }
                Progress::Broken(why) => self.lose(place, || why.to_owned()),
            }
        }
        if !self.slots[place].link.is_up() {
            // The other bytes belong to a connection that is gone.
            rest.clear();
        } else if kept {
            rest.drain(..used);
        } else {
            rest.extend_from_slice(&input[used..]);
        }
        self.slots[place].rest = rest;
        self.input = input;
    }

    /// A complete answer without an error has come.
    fn answered(&mut self, place: usize, now: u64) {
        let slot = &mut self.slots[place];
        slot.sent.clear();
        match slot.doing {
            Doing::Answer => self.advance(place, now),
            Doing::Ending(kind) => {
                if self.over(place, kind, now) {
                    self.advance(place, now);
                }
            }
            Doing::RollingBack(after) => self.rolled_back(place, after, now),
            // No client waits for this answer, so it is dropped.
            Doing::Between | Doing::Sleeping | Doing::Connecting => slot.answer.reply.clear(),
        }
    }
}
