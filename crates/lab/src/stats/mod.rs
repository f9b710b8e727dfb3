//! Statistics of repeated rounds: medians with intervals, ratios of arms measured in turn, drift
//! over a run, and the universal scalability law.
//!
//! What must hold:
//! 1. The same numbers give the same intervals: a constant seeds the resampling, so that a stored
//!    report can be computed again.
//! 2. An interval is never narrower than the number of rounds supports; an unknown one is NaN, not
//!    zero.
//! 3. A difference whose interval holds 1 is no difference.

mod drift;
mod interval;
mod law;
mod least_squares;
mod limit;
mod ratio;
mod trend;

#[cfg(test)]
mod coverage;
#[cfg(test)]
pub(crate) mod test_noise;

pub(crate) use drift::{arm_drift, machine_drift};
#[cfg(test)]
pub use interval::estimate;
pub(crate) use interval::independent_ratio;
pub use interval::{estimate_positive, median};
pub use law::fit;
pub use limit::Limit;
pub use ratio::{of_logs, ratio};
