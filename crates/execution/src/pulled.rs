//! The right rows of a merge join, which it asks for one after the other.
//!
//! The right plan runs on a stack of its own ([`Producer`]). It packs its rows behind their keys
//! into a batch and waits until the batch is read. The first batch has 16 rows, and each further
//! one twice as many, up to 256 rows or 64 KiB. So a LIMIT above the join reads few rows too many,
//! and a change of stacks costs little a row.
//!
//! What must hold: keys come in order. A key that does not ends the statement.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::producer::{Demand, Producer};

use super::equi_join::EquiJoin;
use super::memory::pack_registers;
use super::records::Keys;
use super::stack::too_deep;
use super::{Arena, Executor, File, Flow, run};
use values::error::SqlError;
use values::work;

/// Rows of the first batch, and the most rows and bytes of one.
const FIRST: usize = 16;
const MOST_ROWS: usize = 256;
const MOST_BYTES: usize = 64 << 10;

/// A key and the packed row behind it.
type Entry<'b> = (&'b [u8], &'b [u8]);

/// Packed rows, each behind its key.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The end of each row's key, and of the row.
    ends: Vec<(usize, usize)>,
}

impl Batch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// The rows, from the next one on.
pub(super) struct Pulled<'x> {
    /// None once it has ended.
    producer: Option<Producer<'x, Result<(), SqlError>>>,
    /// The batch that the producer fills.
    filled: Rc<RefCell<Batch>>,
    /// The batch that is read, and the number of its next row.
    read: Batch,
    next: usize,
}

impl<'x> Pulled<'x> {
    /// The right rows of a join, which read the registers of this file.
    pub fn new<'s: 'x>(
        cx: &Executor<'s>,
        join: EquiJoin<'s>,
        file: &'x mut File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<Pulled<'x>, SqlError> {
        let filled = Rc::new(RefCell::new(Batch::default()));
        let (own, mut beside) = (Rc::clone(&filled), cx.beside());
        let body = move |demand: &Demand<'_>| {
            let (mut maker, mut wanted) = (Keys::default(), FIRST);
            let (mut key, mut last) = (Vec::new(), Vec::new());
            run(&mut beside, join.right, file, arena, &mut |cx, file, arena| {
                if !join.key(cx, (false, &mut maker), file, arena, &mut key)? {
                    return Ok(Flow::More);
                }
                if work::compare(&key, &last)?.is_lt() {
                    return Err(out_of_order());
                }
                let is_full = {
                    let Batch { bytes, ends } = &mut *own.borrow_mut();
                    work::put(&key, bytes)?;
                    let end = bytes.len();
                    pack_registers(join.right_registers, file, bytes)?;
                    ends.push((end, bytes.len()));
                    ends.len() >= wanted || bytes.len() >= MOST_BYTES
                };
                std::mem::swap(&mut key, &mut last);
                if is_full {
                    wanted = (wanted * 2).min(MOST_ROWS);
                    return Ok(if demand.wait() { Flow::More } else { Flow::Stop });
                }
                Ok(Flow::More)
            })
            .map(drop)
        };
        let producer = Some(Producer::new(body).map_err(|_| too_deep())?);
        Ok(Pulled { producer, filled, read: Batch::default(), next: 0 })
    }

    /// The next row and its key. None at the end.
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, SqlError> {
        while self.next == self.read.ends.len() {
            let Some(mut producer) = self.producer.take() else { return Ok(None) };
            match producer.resume() {
                None => self.producer = Some(producer),
                Some(ended) => ended?,
            }
            self.read.clear();
            std::mem::swap(&mut self.read, &mut self.filled.borrow_mut());
            self.next = 0;
        }
        let start = self.next.checked_sub(1).map_or(0, |before| self.read.ends[before].1);
        let (key, end) = self.read.ends[self.next];
        Ok(Some((&self.read.bytes[start..key], &self.read.bytes[key..end])))
    }

    /// Goes past the row that [`Pulled::next`] gave.
    pub fn pass(&mut self) {
        self.next += 1;
    }
}

/// The error of an input that does not come in the order of its keys.
pub(super) fn out_of_order() -> SqlError {
    SqlError::internal("an input of a merge join comes out of order")
}
