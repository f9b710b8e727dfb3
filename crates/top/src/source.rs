//! A thread that keeps the connection and looks at the server when asked.
//!
//! The server may answer late or never. The user's keys do not wait for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::connect::Connection;
use crate::sample::{Sample, Wanted};

/// Longest wait of a program without keys. A server gives up a look before that.
const LONGEST: Duration = Duration::from_secs(40);

/// A look at the server, or why there is none.
pub(crate) type Answer = Result<Sample, String>;

pub(crate) struct Source {
    asks: Sender<Wanted>,
    answers: Receiver<Answer>,
    /// When the look that has no answer yet was asked for.
    pub(crate) asked: Option<Instant>,
}

impl Source {
    pub(crate) fn start(mut connection: Connection) -> Result<Self, String> {
        let (asks, asked) = channel();
        let (sender, answers) = channel();
        let epoch = Instant::now();
        let work = move || {
            while let Ok(wanted) = asked.recv() {
                if sender.send(Sample::read(&mut connection, epoch, wanted)).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("connection".to_owned()).spawn(work);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { asks, answers, asked: None })
    }

    /// Asks for a look. [`Source::answer`] tells if nobody is there to take one.
    pub(crate) fn ask(&mut self, wanted: Wanted) {
        if self.asks.send(wanted).is_ok() {
            self.asked = Some(Instant::now());
        }
    }

    /// Looks and waits for the answer.
    pub(crate) fn look(&mut self) -> Answer {
        self.ask(Wanted::default());
        self.answers.recv_timeout(LONGEST).unwrap_or_else(|why| match why {
            RecvTimeoutError::Timeout => {
                Err(format!("the server has not answered for {} s", LONGEST.as_secs()))
            }
            RecvTimeoutError::Disconnected => Err("the thread of the connection has ended".to_owned()),
        })
    }

    /// The answer to the last look, once. Fails if the thread has panicked.
    pub(crate) fn answer(&mut self) -> Result<Option<Answer>, String> {
        match self.answers.try_recv() {
            Ok(answer) => {
                self.asked = None;
                Ok(Some(answer))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err("the thread of the connection has ended".to_owned()),
        }
    }
}
