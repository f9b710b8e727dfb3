//! The scalability law's account of a curve.

use crate::figures::{bounded, clients, number, percent, small, whole};
use crate::record::{Fit, Point};

pub(super) fn sentence(fit: &Fit, points: &[&Point]) -> String {
    let peak = match &fit.peak {
        Some(peak) => format!(
            "its peak is at {} clients, with {} a second",
            bounded(&peak.clients, whole),
            number(peak.tps)
        ),
        None => "it has no peak".into(),
    };
    let terms = format!(
        "the scalability law has contention {} and coherence {}",
        bounded(&fit.contention, percent),
        bounded(&fit.coherence, small)
    );
    let most = points.last().map_or(1, |point| point.clients);
    match lost(fit, most as f64) {
        // A coherence that may be zero gets no share.
        Some((part, _)) if fit.coherence.contains(0.0) != Some(false) => {
            format!("{terms}; {peak}; with {} {} of linear throughput is lost", clients(most), percent(part))
        }
        Some((part, coherence)) => format!(
            "{terms}; {peak}; with {} {} of linear throughput is lost, {} of that to coherence (each client \
             coordinates with each), the rest to contention (serial work)",
            clients(most),
            percent(part),
            percent(coherence)
        ),
        None => format!("{terms}; {peak}"),
    }
}

/// The part of these clients' throughput that contention and coherence lose, and coherence's part
/// of that loss; `None` where they lose nothing.
fn lost(fit: &Fit, clients: f64) -> Option<(f64, f64)> {
    let contention = fit.contention.value * (clients - 1.0);
    let coherence = fit.coherence.value * clients * (clients - 1.0);
    let cost = contention + coherence;
    (cost > 0.0).then(|| (cost / (1.0 + cost), coherence / cost))
}
