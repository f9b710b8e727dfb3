//! Findings: what a report's figures say, as plain sentences. For each arm the shape of its curve and where it turns, what
//! grew there, what the scalability law makes of it, how the arms compare, what failed, and whether the machine kept still.
//!
//! What must hold:
//! 1. A sentence stands only on what was measured: no figure, no sentence; a difference inside the noise is none.
//! 2. What grew is told as what grew, with both figures, not as a cause; the reader draws the conclusion.

mod comparison;
mod curve;
mod growth;
mod law;
mod words;

use crate::drive::Protocol;
use crate::report::{Fit, Point, Report};
use crate::stats::{drift, fit};

/// All points of one arm, workload and protocol, by clients.
struct Group<'a> {
    points: Vec<&'a Point>,
    /// Its protocol's name, where there are several.
    protocol: Option<&'static str>,
}

impl<'a> Group<'a> {
    fn all(points: &'a [Point]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for point in points.iter().filter(|point| point.tps.value.is_finite()) {
            match groups.iter_mut().find(|group| group.is_of(point)) {
                Some(group) => group.points.push(point),
                None => groups.push(Self { points: vec![point], protocol: None }),
            }
        }
        let several = points.iter().any(|point| point.protocol != points[0].protocol);
        for group in &mut groups {
            group.points.sort_by_key(|point| point.clients);
            group.protocol = several.then(|| match group.points[0].protocol {
                Protocol::Simple => "simple",
                Protocol::Extended => "extended",
                Protocol::Prepared => "prepared",
            });
        }
        groups
    }

    fn is_of(&self, point: &Point) -> bool {
        let first = self.points[0];
        (&first.arm, &first.workload, first.protocol) == (&point.arm, &point.workload, point.protocol)
    }

    /// How its sentences begin.
    fn name(&self) -> String {
        let first = self.points[0];
        let protocol = self.protocol.map(|name| format!(", {name}")).unwrap_or_default();
        format!("{}, {}{protocol}", first.arm, first.workload)
    }
}

/// The scalability law through the points of each arm, workload and protocol, and why there is none where there is none.
pub fn fits(points: &[Point]) -> (Vec<Fit>, Vec<String>) {
    let (mut fits, mut refused) = (Vec::new(), Vec::new());
    for group in Group::all(points) {
        match fit(&group.points) {
            Ok(fit) => fits.push(fit),
            // Nobody expects a curve of a single point.
            Err(_) if group.points.len() < 2 => {}
            Err(reason) => refused.push(format!("{}: {reason}.", group.name())),
        }
    }
    (fits, refused)
}

/// The findings of a report whose points and fits are there; its own findings are not looked at.
pub fn findings(report: &Report) -> Vec<String> {
    let mut sentences = Vec::new();
    for group in Group::all(&report.points) {
        let name = group.name();
        let mut said = curve::shape(&group.points);
        said.extend(growth::grown(&group.points));
        let first = group.points[0];
        let of = |fit: &&Fit| {
            (&fit.arm, &fit.workload, fit.protocol) == (&first.arm, &first.workload, first.protocol)
        };
        said.extend(report.fits.iter().find(of).map(|fit| law::sentence(fit, &group.points)));
        said.extend(curve::failures(&group.points));
        sentences.extend(said.into_iter().map(|sentence| format!("{name}: {sentence}.")));
    }
    sentences.extend(comparison::arms(report));
    sentences.extend(drift(&report.machine.noise, &report.points));
    sentences
}

#[cfg(test)]
mod tests;
