//! The real pgbench and sysbench as drivers: their command lines from target and load, what they print as [`super::Measured`].
//!
//! What is counted begins and ends with what the tool itself reports, so its start and the connecting are left out. Its CPU
//! time is that of its process between these two moments.

mod pgbench;
mod sysbench;
mod tool;

pub use pgbench::Pgbench;
pub use sysbench::Sysbench;

use std::time::Duration;

use crate::load::{Arrivals, Load, Pace};

/// Has libpq connect as the native driver does, which speaks neither TLS nor GSSAPI's encryption: left to itself libpq takes
/// either where the server offers it.
const PLAIN: [(&str, &str); 2] = [("PGSSLMODE", "disable"), ("PGGSSENCMODE", "disable")];

/// Seconds before what is counted, and of what is. Both tools know whole ones only: one that rounded would have another
/// warm-up than the driver beside it.
fn seconds(tool: &str, load: &Load) -> Result<(u64, u64), String> {
    if !load.ramp.is_zero() {
        return Err(format!(
            "{tool} begins with all clients at once: leave out --ramp or take the native driver"
        ));
    }
    let whole = |option: &str, time: Duration| match time.subsec_nanos() {
        0 => Ok(time.as_secs()),
        _ => Err(format!(
            "{tool} knows whole seconds only, not {time:?}: make {option} whole or take the native driver"
        )),
    };
    Ok((whole("--warmup", load.warmup)?, whole("--round", load.measured)?))
}

/// The steady rate that a tool is told; `None` for a closed loop.
fn rate(tool: &str, load: &Load) -> Result<Option<f64>, String> {
    match load.pace {
        Pace::Closed { think } if think.is_zero() => Ok(None),
        Pace::Closed { .. } => {
            Err(format!("{tool} can't think between transactions; take the native driver"))
        }
        Pace::Open { from, to, .. } if from != to => {
            Err(format!("{tool} keeps one rate, it can't go from {from} to {to}; take the native driver"))
        }
        Pace::Open { arrivals: Arrivals::Even, .. } => Err(format!(
            "{tool} spaces transactions by chance, not evenly; take Poisson arrivals or the native driver"
        )),
        Pace::Open { from, .. } => Ok(Some(from)),
    }
}

#[cfg(test)]
mod tests;
