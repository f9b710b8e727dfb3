//! Row `client-random`: the random numbers of a load driver's threads.

use calls::random::{Draws, Process, Thread48};
use lab::Random;
use sync::Mutex;

use super::{Arm, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// Steps between two draws, some 75 ns.
const STEPS: u32 = 40;

/// The row.
pub(super) const ROW: Row = Row {
    id: "client-random",
    report: "H11",
    about: "a load driver's random numbers: one generator behind a lock, against one for each thread",
    operation: "draw a number, compute for 75 ns",
    needs: None,
    code: "crates/calls/src/random.rs",
    arms: &[
        Arm { name: "random", part: Part::Stock, start: |_| driver(|_| Process) },
        Arm { name: "erand48", part: Part::Published, start: |_| driver(Thread48::new) },
        Arm {
            name: "lab::Random",
            part: Part::Allcore,
            start: |_| driver(|thread| Own(Random::new(0, thread as u64))),
        },
    ],
};

/// The generator of the lab's threads.
#[derive(Debug)]
struct Own(Random);

impl Draws for Own {
    #[inline]
    fn unit(&mut self) -> f64 {
        self.0.unit()
    }
}

fn driver<D: Draws + 'static>(generator: fn(usize) -> D) -> Started {
    Ok(Box::new(Driver { generator, drawn: Mutex::default() }))
}

#[derive(Debug)]
struct Driver<D> {
    /// The generator of a thread.
    generator: fn(usize) -> D,
    drawn: Mutex<Drawn>,
}

/// The draws of threads that have ended.
#[derive(Debug, Default)]
struct Drawn {
    count: u64,
    sum: f64,
    is_outside: bool,
}

impl<D: Draws> Subject for Driver<D> {
    fn work(&self, worker: &mut Worker<'_>) {
        let mut generator = (self.generator)(worker.number());
        let mut own = Drawn::default();
        worker.repeat(|_| {
            let unit = generator.unit();
            own.count += 1;
            own.sum += unit;
            own.is_outside |= !(0.0..1.0).contains(&unit);
            compute(STEPS);
        });
        let mut all = self.drawn.lock();
        all.count += own.count;
        all.sum += own.sum;
        all.is_outside |= own.is_outside;
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        let Drawn { count, sum, is_outside } = *self.drawn.lock();
        if count != operations || is_outside {
            return Err(format!("{count} of {operations} draws, or one outside of 0 to 1"));
        }
        // The mean of n draws has a standard deviation of sqrt(1 / 12 n).
        let (mean, off) = (sum / count as f64, (12.0 * count as f64).sqrt().recip());
        if (mean - 0.5).abs() > 8.0 * off {
            return Err(format!("the mean of {count} draws is {mean}"));
        }
        Ok(())
    }
}
