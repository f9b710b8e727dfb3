//! Sequences, and the removal of their counters.
//!
//! What must hold:
//!
//! 1. A record that covers a number is in the log before a session gets the number. So the record
//!    precedes that session's commit, and a restart goes on above every committed number.
//! 2. A session that commits no row waits for the record itself. So `SELECT nextval` never gives a
//!    number again after a crash, once the client has heard that the statement is complete.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{Shared, system};
use catalog::Sequence;
use catalog::counter::{Counter, CounterPlace, CounterState};
use runtime::wait_event::{self, WaitEvent};
use txn::Lsn;
use values::error::{SqlError, SqlState};

/// Values given out for each record in the log, as in PostgreSQL.
const LOGGED_AHEAD: i64 = 32;

impl Shared {
    /// A sequence's counter.
    pub(crate) fn counter<'s>(&self, sequence: &'s Sequence) -> Result<&'s Counter, SqlError> {
        match sequence.place.counter() {
            Some(counter) => Ok(counter),
            None => self.load_counter(sequence),
        }
    }

    #[cold]
    fn load_counter<'s>(&self, sequence: &'s Sequence) -> Result<&'s Counter, SqlError> {
        let stored =
            self.internal(|txn| system::get(txn, system::SEQUENCES, &sequence.counter.to_be_bytes()))?;
        let (value, called) = match stored.as_deref().and_then(|bytes| bytes.split_first_chunk::<8>()) {
            Some((value, called)) => (i64::from_le_bytes(*value), called.first() == Some(&1)),
            None => (sequence.first, false),
        };
        let state =
            CounterState { value, called, covered: 0, record: Lsn::ZERO, logging: false, retired: false };
        // If another session has removed the record, it put the counter here before, so this
        // session finds it.
        Ok(sequence.place.put(Counter::new(state)))
    }

    /// Removes the records of counters that no sequence uses. Statements that still see an old
    /// definition go on with the counter in memory. If a record cannot be removed, the next start
    /// removes it.
    pub(crate) fn forget_counters(&self, unused: &[Arc<Sequence>]) {
        if unused.is_empty() {
            return;
        }
        let removed = unused.iter().try_for_each(|sequence| self.retire(sequence)).and_then(|()| {
            let numbers: Vec<u32> = unused.iter().map(|sequence| sequence.counter).collect();
            self.remove_counters(&numbers)
        });
        if let Err(error) = removed {
            log::warn!("counters of dropped sequences are not removed yet: {error}");
        }
    }

    /// Stops writing records of a sequence's counter. From here on it lives in memory only.
    fn retire(&self, sequence: &Sequence) -> Result<(), SqlError> {
        let counter = self.counter(sequence)?;
        counter.begin_logging();
        {
            let mut state = counter.state.lock();
            (state.logging, state.retired) = (false, true);
        }
        counter.logged.wake_all();
        Ok(())
    }

    pub(super) fn remove_counters(&self, unused: &[u32]) -> Result<(), SqlError> {
        self.internal(|txn| {
            unused
                .iter()
                .try_for_each(|counter| system::put(txn, system::SEQUENCES, &counter.to_be_bytes(), None))
        })
    }

    /// Gives a changed definition a counter of its own, which goes on from the sequence's present
    /// value, and returns that value. So a rollback of the change also takes back the numbers that
    /// the transaction took since.
    pub(crate) fn renew_counter(&self, sequence: &mut Sequence) -> Result<i64, SqlError> {
        let (value, called) = self.counter(sequence)?.last_value();
        let counter = self.new_oid();
        self.write_counter(counter, (value, called))?;
        (sequence.counter, sequence.place) = (counter, CounterPlace::default());
        Ok(value)
    }

    /// nextval. Also returns the commit that the caller's commit depends on.
    pub(crate) fn sequence_next(&self, sequence: &Sequence) -> Result<(i64, Lsn), SqlError> {
        let counter = self.counter(sequence)?;
        loop {
            let mine = {
                let mut state = counter.state.lock();
                if !state.logging {
                    let next = after(sequence, state.value, state.called)?;
                    if state.covered > 0 {
                        (state.value, state.called) = (next, true);
                        state.covered -= 1;
                        return Ok((next, state.record));
                    }
                    state.logging = true;
                    true
                } else {
                    false
                }
            };
            if mine {
                self.log_counter(sequence, counter)?;
            } else {
                let is_logged = || !counter.state.lock().logging;
                wait_event::during(WaitEvent::Sequence, || counter.logged.wait_until(is_logged));
            }
        }
    }

    /// Writes a record that covers the next values.
    #[cold]
    fn log_counter(&self, sequence: &Sequence, counter: &Counter) -> Result<(), SqlError> {
        let state = *counter.state.lock();
        let (mut ahead, mut covered) = ((state.value, state.called), 0);
        while covered < LOGGED_AHEAD {
            let Ok(next) = after(sequence, ahead.0, ahead.1) else { break };
            ahead = (next, true);
            covered += 1;
        }
        let written = match state.retired {
            true => Ok(state.record),
            false => self.write_counter(sequence.counter, ahead),
        };
        {
            let mut state = counter.state.lock();
            state.logging = false;
            if let Ok(record) = written {
                (state.covered, state.record) = (covered, record);
            }
        }
        counter.logged.wake_all();
        written.map(drop)
    }

    /// Writes a counter's record. Returns its commit.
    fn write_counter(&self, counter: u32, (value, called): (i64, bool)) -> Result<Lsn, SqlError> {
        let mut bytes = value.to_le_bytes().to_vec();
        bytes.push(u8::from(called));
        let put = |txn: &_| system::put(txn, system::SEQUENCES, &counter.to_be_bytes(), Some(&bytes));
        self.internal_noted(false, put).map(|((), record)| record)
    }

    /// setval. Returns the commit that the caller's commit depends on.
    pub(crate) fn sequence_set(
        &self,
        sequence: &Sequence,
        value: i64,
        called: bool,
    ) -> Result<Lsn, SqlError> {
        if value < sequence.minimum || value > sequence.maximum {
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    sequence.name, sequence.minimum, sequence.maximum
                ),
            ));
        }
        let counter = self.counter(sequence)?;
        let retired = counter.begin_logging();
        let written = match retired {
            true => Ok(counter.state.lock().record),
            false => self.write_counter(sequence.counter, (value, called)),
        };
        {
            let mut state = counter.state.lock();
            *state = match written {
                Ok(record) => CounterState { value, called, covered: 0, record, logging: false, retired },
                Err(_) => CounterState { logging: false, ..*state },
            };
        }
        counter.logged.wake_all();
        written
    }
}

/// The value after another one, within the sequence's bounds.
fn after(sequence: &Sequence, value: i64, called: bool) -> Result<i64, SqlError> {
    if !called {
        return Ok(value);
    }
    match value.checked_add(sequence.increment) {
        Some(next) if next >= sequence.minimum && next <= sequence.maximum => Ok(next),
        _ if sequence.cycle => Ok(if sequence.increment > 0 { sequence.minimum } else { sequence.maximum }),
        _ => {
            let (end, bound) = match sequence.increment > 0 {
                true => ("maximum", sequence.maximum),
                false => ("minimum", sequence.minimum),
            };
            Err(SqlError::new(
                SqlState::SEQUENCE_GENERATOR_LIMIT_EXCEEDED,
                format!("nextval: reached {end} value of sequence \"{}\" ({bound})", sequence.name),
            ))
        }
    }
}
