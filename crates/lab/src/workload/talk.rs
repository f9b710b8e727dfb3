//! Clients whose transactions are async functions: their awaits are the steps that the driver does
//! for them. The client polls them by hand: no runtime, no waker.
//!
//! What must hold: a transaction awaits nothing but a step, and keeps no guard over one.

use std::convert::Infallible;
use std::future::poll_fn;
use std::mem::swap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::client::{Client, Params, Random, Reply, StatementId, Step, Turn};

/// All transactions of a client, one after the other.
pub(super) type Work = Pin<Box<dyn Future<Output = Infallible> + Send>>;

/// A client that begins this work with its first step.
pub(super) struct Talker<F> {
    begin: Option<F>,
    work: Option<Work>,
    talk: Talk,
}

impl<F: FnOnce(Talk, Random) -> Work + Send> Talker<F> {
    pub(super) fn new(begin: F) -> Box<Self> {
        Box::new(Self { begin: Some(begin), work: None, talk: Talk::default() })
    }
}

impl<F: FnOnce(Talk, Random) -> Work + Send> Client for Talker<F> {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        if let Some(begin) = self.begin.take() {
            self.work = Some(begin(self.talk.clone(), turn.random.fork()));
        }
        let work = self.work.as_mut().expect("it has begun");
        self.talk.next(turn, || {
            let Poll::Pending = work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        })
    }

    fn failed(&mut self, again: bool) -> u8 {
        self.talk.failed(again)
    }
}

/// The reason why a transaction is not over by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// It failed, and was rolled back.
    Failed { again: bool },
    /// This data is missing.
    Missing(&'static str),
}

impl From<&'static str> for Ended {
    fn from(what: &'static str) -> Self {
        Self::Missing(what)
    }
}

/// The state that a client and its transactions share. No other thread takes part, so the lock is
/// always free.
#[derive(Debug, Clone, Default)]
pub(super) struct Talk(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    params: Params,
    reply: Reply,
    step: Option<Step>,
    /// Whether the last step failed, and if so, whether its transaction begins again.
    failed: Option<bool>,
    /// The kind of the transaction under way.
    kind: u8,
}

impl Talk {
    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the transactions up to their next step, which the driver does.
    fn next(&self, turn: Turn<'_>, poll: impl FnOnce()) -> Step {
        let mut shared = self.shared();
        swap(turn.params, &mut shared.params);
        shared.reply.copy(turn.reply);
        drop(shared);
        poll();
        let mut shared = self.shared();
        swap(turn.params, &mut shared.params);
        shared.step.take().expect("transactions wait for steps only")
    }

    /// Tells the transactions that the last step failed; returns the kind of the one under way.
    fn failed(&self, again: bool) -> u8 {
        let mut shared = self.shared();
        shared.failed = Some(again);
        shared.kind
    }

    /// Begins a transaction of this kind.
    pub(super) fn begin(&self, kind: u8) {
        self.shared().kind = kind;
    }

    pub(super) async fn step(&self, step: Step) -> Result<(), Ended> {
        let mut step = Some(step);
        poll_fn(|_| {
            let mut shared = self.shared();
            if step.is_some() {
                (shared.step, shared.failed) = (step.take(), None);
                return Poll::Pending;
            }
            Poll::Ready(shared.failed.map_or(Ok(()), |again| Err(Ended::Failed { again })))
        })
        .await
    }

    /// Runs a statement whose parameters are these numbers.
    pub(super) async fn run(&self, sql: impl Into<StatementId>, values: &[i64]) -> Result<(), Ended> {
        self.run_with(sql, |params| params.ints(values)).await
    }

    /// Runs a statement with the parameters that `fill` writes.
    pub(super) async fn run_with(
        &self,
        sql: impl Into<StatementId>,
        fill: impl FnOnce(&mut Params),
    ) -> Result<(), Ended> {
        fill(&mut self.shared().params);
        self.step(Step::Run(sql.into())).await
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Reply) -> T) -> T {
        read(&self.shared().reply)
    }

    /// A number in the first row of the last statement's reply.
    pub(super) fn int(&self, column: usize) -> Option<i64> {
        self.read(|reply| reply.int(0, column))
    }
}
