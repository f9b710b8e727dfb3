//! The pool as a view shows it.

use runtime::memory::RegionKind;
use runtime::topology::Workers;

use super::{Pool, PoolStatistics};

/// The pool as it is now. The parts are read one after the other while cores go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolState {
    /// Frames.
    pub frames: usize,
    /// Frames that have come into use.
    pub in_use: usize,
    /// Free frames in the lists of each node's cores.
    pub free: Vec<u64>,
    /// The frame that the clock sweep claims next.
    pub hand: usize,
    /// Frames that the sweep claims at a time.
    pub sweep_batch: usize,
    /// The kind of the frames' pages.
    pub kind: RegionKind,
    /// Counts since the pool was made, complete passes of the sweep among them.
    pub statistics: PoolStatistics,
}

impl Pool {
    /// The pool as it is now; `workers` are those it was made for.
    pub fn state(&self, workers: &Workers) -> PoolState {
        let mut free = vec![0; workers.nodes()];
        for core in 0..self.free.cores() {
            free[workers.node_of(core)] += u64::from(self.free.len(core));
        }
        PoolState {
            frames: self.frames(),
            in_use: self.growth.in_use().map(|range| range.len()).sum(),
            free,
            hand: self.sweep.position().hand,
            sweep_batch: self.sweep_batch(),
            kind: self.memory(),
            statistics: self.statistics(),
        }
    }
}
