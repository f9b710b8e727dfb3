//! The load loop of one thread.
//!
//! Each turn: begin what is due (timers, arrivals of an open loop), wait for sockets or for what is due next, serve every
//! socket that has something: receive, decode, step its client, send. Sockets are watched by edges, so one that was served
//! costs nothing in the next wait; a receive that fills less than the buffer has emptied its socket.
//!
//! What must hold:
//! 1. Nothing is allocated once the clients' buffers are warm.
//! 2. A client has at most one thing to wait for (see [`Doing`]), and is in at most one place: under way, in `timers`, or
//!    in `free`.
//! 3. Time is read once for each socket served; what follows from it (a transaction's end and the next one's beginning)
//!    happens at that time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

use super::arrivals::Schedule;
use super::connect::Connection;
use super::cpu;
use super::tally::Tally;
use crate::client::{Client, Params, Random, Step, Turn};
use crate::drive::wire::{Answer, Progress, Remedy, Wire};
use crate::drive::{Live, Load, Pace, Phase};

/// Received at once; more than the answers to a pipeline of point reads.
const INPUT: usize = 1 << 16;
/// Sockets served between two looks at timers and arrivals.
const BATCH: usize = 256;
/// How often it is looked whether the round was stopped, at least.
const LOOK: u64 = 20_000_000;
/// How long a server may take to close the connections after the round.
const PARTING: Duration = Duration::from_secs(2);
const WATCHED: epoll::EventFlags =
    epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP).union(epoll::EventFlags::ET);

/// What all threads of a round know. Times are nanoseconds since its beginning.
pub(super) struct Round {
    pace: Pace,
    tries: u32,
    seed: u64,
    ramp: u64,
    /// When counting begins, and when the round ends.
    counted: (u64, u64),
    clients: usize,
    threads: usize,
    kinds: usize,
}

impl Round {
    pub(super) fn new(load: &Load, threads: usize, kinds: usize) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        let from = nanos(load.ramp) + nanos(load.warmup);
        Self {
            pace: load.pace,
            tries: load.tries.max(1),
            seed: load.seed,
            ramp: nanos(load.ramp),
            counted: (from, from + nanos(load.measured)),
            clients: load.clients,
            threads,
            kinds,
        }
    }
}

/// What a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// For its first or next transaction, in `timers` or in `free`.
    Between,
    /// For the end of a sleep, in `timers`.
    Sleeping,
    /// For an answer the client wants.
    Answer,
    /// For an answer it did not ask for.
    Silent,
    /// For the answers to what was queued; then a transaction of this kind is over.
    Ending(u8),
    /// For the answer to a ROLLBACK; then the transaction is tried again, or given up.
    RollingBack {
        /// Whether it is tried again.
        again: bool,
    },
}

/// A client and its connection.
struct Seat<W: Wire> {
    /// Until the client is lost.
    socket: Option<OwnedFd>,
    session: W::Session,
    client: Box<dyn Client>,
    answer: Answer,
    doing: Doing,
    /// When its transaction began, or was due.
    begun: u64,
    /// Which try of it this is.
    tries: u32,
    /// Received, and not whole.
    rest: Vec<u8>,
    /// Not yet taken by the socket.
    unsent: Vec<u8>,
}

/// One thread of the driver.
pub(super) struct Thread<'a, W: Wire> {
    wire: &'a W,
    round: &'a Round,
    number: usize,
    epoll: OwnedFd,
    seats: Vec<Seat<W>>,
    /// Clients that are not lost.
    alive: usize,
    /// When what is due, soonest first: clients whose sleep or pause is over.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    /// Clients that wait for an arrival, longest first (open loop).
    free: VecDeque<u32>,
    schedule: Option<Schedule>,
    random: Random,
    params: Params,
    input: Vec<u8>,
    out: Vec<u8>,
    tally: Tally,
    /// Transactions done since the beginning.
    done: u64,
}

impl<'a, W: Wire> Thread<'a, W> {
    pub(super) fn new(
        wire: &'a W,
        round: &'a Round,
        number: usize,
        seats: Vec<(Connection<W>, Box<dyn Client>)>,
    ) -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let count = seats.len();
        let mut timers = BinaryHeap::with_capacity(count);
        for (place, (connection, _)) in seats.iter().enumerate() {
            epoll::add(&epoll, &connection.socket, epoll::EventData::new_u64(place as u64), WATCHED)?;
            let client = number + place * round.threads;
            timers.push(Reverse((
                (round.ramp as f64 * client as f64 / round.clients as f64) as u64,
                place as u32,
            )));
        }
        let seat = |(connection, client): (Connection<W>, Box<dyn Client>)| Seat {
            socket: Some(connection.socket),
            session: connection.session,
            client,
            answer: Answer::default(),
            doing: Doing::Between,
            begun: 0,
            tries: 1,
            rest: Vec::new(),
            unsent: Vec::new(),
        };
        let schedule = match round.pace {
            Pace::Closed { .. } => None,
            Pace::Open { from, to, arrivals } => {
                let random = Random::new(round.seed, (round.threads + number) as u64);
                let whose = (number, round.threads);
                Some(Schedule::new((from, to), round.counted.1, arrivals, whose, random))
            }
        };
        Ok(Self {
            wire,
            round,
            number,
            epoll,
            seats: seats.into_iter().map(seat).collect(),
            alive: count,
            timers,
            free: VecDeque::with_capacity(count),
            tally: Tally::new(round.kinds, round.counted, schedule.is_some()),
            schedule,
            random: Random::new(round.seed, number as u64),
            params: Params::default(),
            input: Vec::with_capacity(INPUT),
            out: Vec::with_capacity(INPUT),
            done: 0,
        })
    }

    /// Runs the round, which began at `origin`.
    pub(super) fn run(mut self, origin: Instant, live: &Live) -> Tally {
        let clock = || origin.elapsed().as_nanos() as u64;
        let (from, end) = self.round.counted;
        let mut events = Vec::with_capacity(BATCH);
        let mut worked: Option<cpu::Reading> = None;
        let mut now = clock();
        while now < end && self.alive > 0 && !live.is_stopped() {
            if worked.is_none() && now >= from {
                worked = Some(cpu::Reading::of_this_thread());
                live.enter(Phase::Measuring);
            }
            self.begin_due(now);
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
                self.serve(event.data.u64() as usize, event.flags, &clock);
            }
            live.publish(self.number, self.done);
            now = clock();
        }
        if self.alive > 0 {
            live.enter(Phase::Over);
        }
        if let Some(before) = worked {
            self.tally.cpu = before.until(&cpu::Reading::of_this_thread());
        }
        self.tally.end(now);
        if let Some(schedule) = &mut self.schedule {
            let end = now.min(end);
            while let Some(due) = schedule.take(end.saturating_sub(1)) {
                self.tally.unstarted(due, end);
            }
        }
        self.part(&mut events);
        self.tally
    }

    /// Wakes clients whose time has come and gives those that are free what has arrived.
    fn begin_due(&mut self, now: u64) {
        // Those that fall due at once again have their turn after the sockets.
        for _ in 0..self.timers.len() {
            match self.timers.peek() {
                Some(&Reverse((due, _))) if due <= now => (),
                _ => break,
            }
            let Some(Reverse((_, place))) = self.timers.pop() else { break };
            let place = place as usize;
            let seat = &self.seats[place];
            if seat.socket.is_some() && (seat.doing == Doing::Sleeping || self.next_transaction(place, now)) {
                self.advance(place, now);
            }
        }
        while self.schedule.as_ref().and_then(Schedule::due).is_some_and(|due| due <= now) {
            let Some(place) = self.free.pop_front() else { break };
            let place = place as usize;
            if self.seats[place].socket.is_some() && self.next_transaction(place, now) {
                self.advance(place, now);
            }
        }
    }

    /// How long nothing is due, in nanoseconds.
    fn wait(&self, now: u64) -> u64 {
        let mut until = (now + LOOK).min(self.round.counted.1);
        if let Some(Reverse((due, _))) = self.timers.peek() {
            until = until.min(*due);
        }
        if let Some(due) = self.schedule.as_ref().and_then(Schedule::due)
            && !self.free.is_empty()
        {
            until = until.min(due);
        }
        until.saturating_sub(now)
    }

    /// Begins the client's next transaction if one is to be begun now; otherwise sees to it that it will be.
    fn next_transaction(&mut self, place: usize, now: u64) -> bool {
        let seat = &mut self.seats[place];
        seat.doing = Doing::Between;
        seat.tries = 1;
        seat.answer.reply.clear();
        let Some(schedule) = &mut self.schedule else {
            seat.begun = now;
            return true;
        };
        match schedule.take(now) {
            Some(due) => {
                seat.begun = due;
                self.tally.begun(due, now);
                true
            }
            None => {
                self.free.push_back(place as u32);
                false
            }
        }
    }

    /// A transaction is over, one way or the other; whether the client begins the next at once.
    fn pause(&mut self, place: usize, now: u64) -> bool {
        match self.round.pace {
            Pace::Closed { think } if !think.is_zero() => {
                self.seats[place].doing = Doing::Between;
                self.timers.push(Reverse((now + think.as_nanos() as u64, place as u32)));
                false
            }
            _ => self.next_transaction(place, now),
        }
    }

    /// Steps a client until it waits for something, and sends what it wants sent.
    fn advance(&mut self, place: usize, now: u64) {
        self.out.clear();
        let mut over = false;
        loop {
            self.params.clear();
            let seat = &mut self.seats[place];
            let turn = Turn { random: &mut self.random, params: &mut self.params, reply: &seat.answer.reply };
            match seat.client.next(turn) {
                Step::Run(id) => {
                    seat.answer.reply.clear();
                    self.wire.encode(&mut seat.session, id, &self.params, true, &mut self.out);
                    seat.doing = Doing::Answer;
                    break;
                }
                Step::Queue(id) => {
                    if self.wire.encode(&mut seat.session, id, &self.params, false, &mut self.out) {
                        seat.doing = Doing::Silent;
                        break;
                    }
                }
                Step::Sync => {
                    seat.answer.reply.clear();
                    if self.wire.sync(&mut seat.session, &mut self.out) {
                        seat.doing = Doing::Silent;
                        break;
                    }
                }
                Step::Sleep(time) => {
                    seat.doing = Doing::Sleeping;
                    seat.answer.reply.clear();
                    self.timers.push(Reverse((now + time.as_nanos() as u64, place as u32)));
                    break;
                }
                Step::Done(kind) => {
                    if self.wire.sync(&mut seat.session, &mut self.out) {
                        seat.doing = Doing::Ending(kind);
                        break;
                    }
                    self.count(place, kind, now);
                    if !self.pause(place, now) {
                        break;
                    }
                    // Transactions that send nothing must not keep the thread from all others.
                    if std::mem::replace(&mut over, true) && self.out.is_empty() {
                        self.seats[place].doing = Doing::Sleeping;
                        self.timers.push(Reverse((now, place as u32)));
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

    /// A transaction is done.
    fn count(&mut self, place: usize, kind: u8, now: u64) {
        self.done += 1;
        self.tally.done(kind, self.seats[place].begun, now);
    }

    /// Receives what a socket has.
    fn serve(&mut self, place: usize, flags: epoll::EventFlags, clock: &impl Fn() -> u64) {
        if flags.contains(epoll::EventFlags::OUT) {
            self.send_rest(place);
        }
        while let Some(socket) = &self.seats[place].socket {
            self.input.clear();
            let received = match net::recv(socket, spare_capacity(&mut self.input), RecvFlags::DONTWAIT) {
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

    /// Takes what was received.
    fn take(&mut self, place: usize, now: u64) {
        let input = std::mem::take(&mut self.input);
        let mut rest = std::mem::take(&mut self.seats[place].rest);
        let kept = !rest.is_empty();
        if kept {
            rest.extend_from_slice(&input);
        }
        let bytes = if kept { &rest } else { &input };
        let mut used = 0;
        while self.seats[place].socket.is_some() {
            let seat = &mut self.seats[place];
            self.out.clear();
            let (taken, progress) =
                self.wire.decode(&mut seat.session, &bytes[used..], &mut seat.answer, &mut self.out);
            used += taken;
            self.send(place);
            match progress {
                Progress::More => break,
                Progress::Replied => self.answered(place, now),
                Progress::Failed => self.failed(place, now),
                Progress::Ended => {
                    self.tally.error(&self.seats[place].answer.failure, now);
                    self.lose_by_failure(place);
                }
                Progress::Broken(why) => self.lose(place, || why.to_owned()),
            }
        }
        if kept {
            rest.drain(..used);
        } else {
            rest.extend_from_slice(&input[used..]);
        }
        self.seats[place].rest = rest;
        self.input = input;
    }

    /// An answer is there, and all is well.
    fn answered(&mut self, place: usize, now: u64) {
        let seat = &mut self.seats[place];
        match seat.doing {
            Doing::Answer => self.advance(place, now),
            Doing::Silent => {
                seat.answer.reply.clear();
                self.advance(place, now);
            }
            Doing::Ending(kind) => {
                self.count(place, kind, now);
                if self.pause(place, now) {
                    self.advance(place, now);
                }
            }
            Doing::RollingBack { again } => self.rolled_back(place, again, now),
            // Nothing was asked for.
            Doing::Between | Doing::Sleeping => (),
        }
    }

    /// An error is there.
    fn failed(&mut self, place: usize, now: u64) {
        let seat = &mut self.seats[place];
        self.tally.error(&seat.answer.failure, now);
        let remedy = seat.answer.failure.code.remedy();
        if remedy == Remedy::Nothing || matches!(seat.doing, Doing::RollingBack { .. }) {
            return self.lose_by_failure(place);
        }
        let again = remedy == Remedy::Again && seat.tries < self.round.tries;
        self.out.clear();
        if self.wire.rollback(&mut seat.session, &mut self.out) {
            seat.doing = Doing::RollingBack { again };
            self.send(place);
        } else {
            self.rolled_back(place, again, now);
        }
    }

    fn rolled_back(&mut self, place: usize, again: bool, now: u64) {
        let seat = &mut self.seats[place];
        seat.answer.reply.clear();
        let kind = seat.client.failed(again);
        self.tally.failed(kind, again, now);
        if again {
            self.seats[place].tries += 1;
        }
        if again || self.pause(place, now) {
            self.advance(place, now);
        }
    }

    /// Sends `out`.
    fn send(&mut self, place: usize) {
        let seat = &mut self.seats[place];
        let (Some(socket), false) = (&seat.socket, self.out.is_empty()) else { return };
        if !seat.unsent.is_empty() {
            seat.unsent.extend_from_slice(&self.out);
            return;
        }
        let sent = send(socket, &self.out);
        if sent < self.out.len() {
            seat.unsent.extend_from_slice(&self.out[sent..]);
            self.watch(place, WATCHED | epoll::EventFlags::OUT);
        }
    }

    /// Sends what the socket did not take.
    fn send_rest(&mut self, place: usize) {
        let seat = &mut self.seats[place];
        let Some(socket) = &seat.socket else { return };
        let sent = send(socket, &seat.unsent);
        seat.unsent.drain(..sent);
        if seat.unsent.is_empty() {
            self.watch(place, WATCHED);
        }
    }

    fn watch(&mut self, place: usize, flags: epoll::EventFlags) {
        let Some(socket) = &self.seats[place].socket else { return };
        if let Err(error) = epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(place as u64), flags)
        {
            self.lose(place, || format!("the socket can't be watched: {error}"));
        }
    }

    /// A client can't go on.
    fn lose(&mut self, place: usize, why: impl FnOnce() -> String) {
        if self.seats[place].socket.take().is_some() {
            self.alive -= 1;
            self.tally.lost(why);
        }
    }

    fn lose_by_failure(&mut self, place: usize) {
        let failure = std::mem::take(&mut self.seats[place].answer.failure);
        self.lose(place, || match failure.code.advice() {
            Some(advice) => format!("{failure}; {advice}"),
            None => failure.to_string(),
        });
    }

    /// Says good-bye and waits until the server has closed the connections, so that the next round finds their places
    /// free.
    fn part(&mut self, events: &mut Vec<epoll::Event>) {
        let until = Instant::now() + PARTING;
        self.out.clear();
        self.wire.leave(&mut self.out);
        for place in 0..self.seats.len() {
            self.send(place);
        }
        while self.alive > 0 && Instant::now() < until {
            events.clear();
            let wait = Timespec { tv_sec: 0, tv_nsec: LOOK as i64 };
            if epoll::wait(&self.epoll, spare_capacity(events), Some(&wait))
                .is_err_and(|error| error != Errno::INTR)
            {
                return;
            }
            for event in events.iter() {
                let place = event.data.u64() as usize;
                while let Some(socket) = &self.seats[place].socket {
                    self.input.clear();
                    match net::recv(socket, spare_capacity(&mut self.input), RecvFlags::DONTWAIT) {
                        Ok((1.., _)) | Err(Errno::INTR) => (),
                        Err(Errno::AGAIN) => break,
                        Ok((0, _)) | Err(_) => {
                            self.seats[place].socket = None;
                            self.alive -= 1;
                        }
                    }
                }
            }
        }
    }
}

/// How much of `bytes` the socket takes. That the server has closed it is seen by receiving, with the reason it gave.
fn send(socket: &OwnedFd, bytes: &[u8]) -> usize {
    loop {
        match net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => return sent,
            Err(Errno::INTR) => (),
            Err(Errno::AGAIN) => return 0,
            Err(_) => return bytes.len(),
        }
    }
}
