//! A round: a pooled fiber serves the core's readable sessions one after the other and collects
//! their replies.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::session::Session;
use super::{Net, Next, Peer, Serve};
use crate::account;
use crate::fiber;
use crate::interrupt::{self, Interrupt};
use crate::timer;
use crate::wait_event::{self, WaitEvent};
use crate::work;

/// Room for receiving; also where a round's replies are sent.
pub(super) const BUFFER: usize = 64 * 1024;
/// A reply longer than this is sent by itself instead of being collected.
const COLLECTED_MAX: usize = 8 * 1024;
/// A large reply is sent in such pieces, so that other fibers run in between. The rest that a
/// socket does not take is copied.
const PIECE: usize = 256 * 1024;
/// A left-over part of a message longer than this keeps its buffer instead of being copied.
const COPIED_MAX: usize = 16 * 1024;
/// A closed session whose peer does not take the last reply is dropped after this.
const LINGER: Duration = Duration::from_secs(5);
/// A closed session whose peer has got the last reply, and does not close, is dropped after this.
pub(super) const FAREWELL: Duration = Duration::from_secs(1);

/// A round's receive and send buffers, which the core keeps from round to round. No session pays
/// for them while they are no larger than [`BUFFER`]. A session that makes one grow pays for its
/// replacement.
pub(super) struct Buffers {
    input: Input,
    output: Vec<u8>,
    /// Further buffers that the core keeps, and how many there are with these.
    pub(super) next: Option<Box<Buffers>>,
    pub(super) kept: usize,
}

impl Buffers {
    pub(super) fn new() -> Buffers {
        Buffers { input: Input::default(), output: Vec::with_capacity(BUFFER), next: None, kept: 0 }
    }
}

/// Received bytes: consumed at the front, received at the end.
///
/// They lie in the fiber's own buffer, or in a session's, which comes with a long part of a message
/// and stays the session's. So each session pays for its own bytes, and for none of the room that
/// others' messages made.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    start: usize,
    /// The fiber's own buffer, while `bytes` is a session's.
    own: Option<Vec<u8>>,
}

impl Input {
    /// Gives the fiber's buffer its room, before a session pays for what is allocated.
    fn prepare(&mut self) {
        self.start = 0;
        self.bytes.clear();
        self.bytes.reserve(BUFFER);
    }

    /// Takes what the session kept of a message.
    fn load(&mut self, partial: Vec<u8>) {
        if partial.len() > COPIED_MAX {
            self.own = Some(std::mem::replace(&mut self.bytes, partial));
            self.bytes.reserve(BUFFER.saturating_sub(self.bytes.len()).max(1));
        } else {
            self.bytes.extend_from_slice(&partial);
        }
    }

    /// The bytes that are not consumed, to be kept by the session, in a buffer of at most twice
    /// their length.
    fn unload(&mut self) -> Vec<u8> {
        let rest = self.bytes.len() - self.start;
        if self.own.is_some() && rest > COPIED_MAX && self.bytes.capacity() <= 2 * rest {
            self.compact();
            return self.let_go();
        }
        let kept = self.bytes[self.start..].to_vec();
        if self.own.is_some() || self.bytes.capacity() > BUFFER {
            self.let_go();
        }
        kept
    }

    /// Forgets what has come.
    fn clear(&mut self) {
        self.start = self.bytes.len();
        self.unload();
    }

    /// Gives the session's buffer away, or the fiber's that has grown; the fiber has its own again.
    /// A session that let it grow pays for a new one, and so in all for nothing.
    fn let_go(&mut self) -> Vec<u8> {
        let own = self.own.take().unwrap_or_else(|| Vec::with_capacity(BUFFER));
        std::mem::replace(&mut self.bytes, own)
    }

    fn compact(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
    }

    /// Makes room to receive, so that `at_least` bytes fit in all.
    fn make_room(&mut self, at_least: usize) {
        if self.bytes.capacity() - self.start < at_least.max(self.bytes.len() - self.start + 1)
            || self.start > BUFFER
        {
            self.compact();
        }
        let missing = at_least.saturating_sub(self.bytes.len()).max(1);
        self.bytes.reserve(missing);
    }
}

/// The job of a serving fiber: sessions until there are none, or one for which it had to wait.
pub(crate) fn serve_round() {
    let net = super::here();
    let mut buffers = net.take_buffers();
    fiber::was_suspended();
    while let Some(session) = net.next_ready() {
        net.prefetch_next();
        serve_one(net, &session, &mut buffers);
        if fiber::was_suspended() {
            break; // fibers that can go on run before sessions that have just become ready
        }
    }
    net.keep_buffers(buffers);
}

/// Serves one session once: everything that has come.
fn serve_one(net: &Net, session: &Rc<Session>, buffers: &mut Buffers) {
    let blocked = !session.unsent.borrow().is_empty() && !session.dead.get();
    let is_told = session.interrupt.is_ending() || is_starved(&session.interrupt);
    if blocked && !is_told && session.keep_arrival(net) {
        return; // it comes again when the socket has taken its replies
    }
    let Some(mut handler) = session.handler.take() else {
        session.keep_arrival(net);
        drop(session.partial.take());
        finish_closed(net, session);
        return;
    };
    session.busy.set(true);
    buffers.input.prepare();
    account::enter(Arc::as_ptr(&session.interrupt));
    let next = serve_input(net, session, &mut *handler, buffers);
    if next != Next::Wait {
        // The account is left before another core may enter it.
        account::leave();
        return leave_round(net, session, handler, buffers, next);
    }
    session.partial.set(buffers.input.unload());
    account::leave();
    session.handler.set(Some(handler));
    session.busy.set(false);
    if !buffers.output.is_empty() {
        reply(net, session, &mut buffers.output);
    }
    if buffers.output.capacity() > BUFFER {
        account::charged_to(&session.interrupt, || buffers.output = Vec::with_capacity(BUFFER));
    }
    if session.readable.get() || session.woken.get() || session.dead.get() {
        net.make_ready(session);
    }
}

/// The session ends, or goes on where it can run SQL.
#[cold]
fn leave_round(net: &Net, session: &Rc<Session>, handler: Box<dyn Serve>, buffers: &mut Buffers, next: Next) {
    if next == Next::Close {
        buffers.input.clear();
        return close(net, session, handler, &mut buffers.output);
    }
    // Sent before the session leaves, so that the next core's replies come behind.
    net.send_replies();
    session.send_or_keep(net, &buffers.output);
    buffers.output.clear();
    let partial = buffers.input.unload();
    if net.core == net.shared.service() {
        net.hand_over(session, handler, (partial, next == Next::EnterReserve));
    } else {
        session.partial.set(partial);
        session.handler.set(Some(handler));
        session.busy.set(false);
        session.woken.set(true);
        net.make_ready(session);
    }
}

/// Receives and lets the handler serve; what the session wants next.
fn serve_input(net: &Net, session: &Rc<Session>, handler: &mut dyn Serve, buffers: &mut Buffers) -> Next {
    let Buffers { input, output, .. } = buffers;
    input.load(session.partial.take());
    output.clear();
    let mut has_news = session.woken.replace(false);
    if session.arrived.get().is_some() || session.readable.get() && !session.dead.get() {
        has_news |= session.receive_or_end(net, &mut input.bytes);
    }
    if session.dead.get() {
        return Next::Close;
    }
    if !has_news {
        return Next::Wait;
    }
    interrupt::obey(Arc::as_ptr(&session.interrupt));
    let mut io = SessionIo { session, input, output };
    let served = catch_unwind(AssertUnwindSafe(|| handler.serve(&mut io)));
    fiber::obey_nobody();
    match served {
        Ok(Next::Wait) if session.at_end.get() || super::here().draining.get() => Next::Close,
        Ok(next) => next,
        Err(_) => {
            output.clear(); // half a reply would only confuse the client
            Next::Close
        }
    }
}

/// Collects a small reply, sends a big one now.
fn reply(net: &Net, session: &Rc<Session>, output: &mut Vec<u8>) {
    if output.len() <= COLLECTED_MAX {
        net.collect(session, output);
    } else {
        net.send_replies(); // an earlier reply of this session may be among them
        session.send_or_keep(net, output);
    }
    output.clear();
}

/// Whether the session is to give its memory up while the process is short of it.
fn is_starved(interrupt: &Interrupt) -> bool {
    interrupt.is_overdrawn() && account::is_short()
}

/// Ends a session: its last words are sent, the handler lets go, the socket is closed once it took
/// them.
fn close(net: &Net, session: &Rc<Session>, mut handler: Box<dyn Serve>, output: &mut Vec<u8>) {
    net.send_replies();
    session.send_or_keep(net, output);
    output.clear();
    let closed = catch_unwind(AssertUnwindSafe(|| {
        handler.closed();
        let remains = handler.remains();
        drop(handler);
        remains
    }));
    fiber::obey_nobody();
    // A panic has been logged by the hook.
    session.remains.set(closed.unwrap_or_default());
    session.busy.set(false);
    session.is_closed.set(true);
    let waits = !session.unsent.borrow().is_empty();
    if !finish_closed(net, session) {
        let key = session.key;
        timer::after(if waits { LINGER } else { FAREWELL }, move || {
            let net = super::here();
            if let Some(session) = net.find(key) {
                session.wait_no_more();
                finish_closed(net, &session);
            }
        });
    }
}

/// Forgets a closed session once nothing is left to send and its client has heard it; at shutdown
/// it isn't waited for. Whether it is forgotten.
fn finish_closed(net: &Net, session: &Rc<Session>) -> bool {
    let unsent = !session.unsent.borrow().is_empty();
    let waits = unsent || session.lingers_on();
    if !session.dead.get() && !net.draining.get() {
        if waits {
            return false;
        }
        if session.is_unread(net) {
            session.say_end();
            return false;
        }
    }
    net.detach(session);
    true
}

/// A session's bytes in and out, while it is served.
pub struct SessionIo<'a> {
    session: &'a Rc<Session>,
    input: &'a mut Input,
    output: &'a mut Vec<u8>,
}

impl std::fmt::Debug for SessionIo<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (input, output) = (self.input().len(), self.output.len());
        out.debug_struct("SessionIo").field("input", &input).field("output", &output).finish_non_exhaustive()
    }
}

impl SessionIo<'_> {
    /// The bytes that were received and not consumed, contiguous.
    #[inline]
    pub fn input(&self) -> &[u8] {
        &self.input.bytes[self.input.start..]
    }

    /// Drops the first `count` bytes of the input. Panics when it has fewer.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.input.bytes.len() - self.input.start, "more is consumed than was received");
        self.input.start += count;
    }

    /// Parks until `input()` holds `at_least` bytes; sends what is in the output first.
    /// `UnexpectedEof` when the peer has closed, `Interrupted` (not taken) when an interrupt is
    /// pending.
    pub fn fill(&mut self, at_least: usize) -> io::Result<()> {
        while self.input().len() < at_least {
            self.input.make_room(at_least);
            match self.session.receive(&mut self.input.bytes) {
                Ok(0) => {
                    self.session.at_end.set(true);
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.flush()?;
                    let readable = |session: &Session| session.readable.get();
                    wait_event::during(WaitEvent::ClientRead, || {
                        self.wait_for_socket(Interrupt::is_pending, readable)
                    })?;
                }
                Err(error) => {
                    self.session.dead.set(true);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The reply: append to it. It is sent at the end of the round. Holds nothing but what this
    /// call of `serve` has appended and not flushed.
    #[inline]
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.output
    }

    /// Input and output at once.
    #[inline]
    pub fn both(&mut self) -> (&[u8], &mut Vec<u8>) {
        (&self.input.bytes[self.input.start..], self.output)
    }

    /// Sends the output now; parks while the socket is full. Call it when the output is over 64
    /// KiB. Only an interrupt that ends the session ends the wait (`Interrupted`, not taken): half
    /// a message can't be taken back. An interrupt for memory ends the wait too, while the process
    /// is short of memory. Then the connection counts as broken, and its output is dropped.
    pub fn flush(&mut self) -> io::Result<()> {
        let net = super::here();
        net.send_replies();
        let output = std::mem::take(self.output);
        for piece in output.chunks(PIECE) {
            self.session.send_or_keep(net, piece);
            while !self.session.dead.get() && !self.session.unsent.borrow().is_empty() {
                let sent = |session: &Session| session.unsent.borrow().is_empty();
                let gives_up = |interrupt: &Interrupt| interrupt.is_ending() || is_starved(interrupt);
                let waited =
                    wait_event::during(WaitEvent::ClientWrite, || self.wait_for_socket(gives_up, sent));
                if waited.is_err() && !self.session.interrupt.is_ending() {
                    self.session.give_up_sending();
                }
                waited?;
            }
            work::yield_after(piece.len());
        }
        *self.output = output;
        self.output.clear();
        if self.session.dead.get() { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }

    /// Parks until the socket has the wanted state, is broken, or an interrupt ends the wait.
    fn wait_for_socket(
        &self,
        gives_up: impl Fn(&Interrupt) -> bool + Copy,
        wanted: impl Fn(&Session) -> bool,
    ) -> io::Result<()> {
        // A masked fiber (a commit that reports) waits whatever is raised.
        let gives_up = |interrupt: &Interrupt| !interrupt::is_masked() && gives_up(interrupt);
        while !wanted(self.session) && !self.session.dead.get() {
            self.session.waiter.set(Some(fiber::current_arc()));
            let interrupted = self.session.interrupt.park_unless(gives_up);
            self.session.waiter.set(None);
            if interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(())
    }

    /// Gives the client up to 1 s to read the last reply when the session is closed. Input that
    /// comes meanwhile is read and dropped. For ends that the server decides; a client that asked
    /// for the end needs no wait.
    pub fn linger(&self) {
        self.session.lingers.set(true);
    }

    /// The session's interrupt.
    pub fn interrupt(&self) -> &Arc<Interrupt> {
        &self.session.interrupt
    }

    /// Where the client comes from.
    pub fn peer(&self) -> &Peer {
        &self.session.peer
    }

    /// Whether the peer has closed its side: nothing more will come.
    pub fn at_end(&self) -> bool {
        self.session.at_end.get()
    }
}
