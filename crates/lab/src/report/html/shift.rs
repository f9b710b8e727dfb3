//! Shares at an arm's best point and where throughput has fallen, as bars.

use serde_json::{Value, json};

use super::plot;
use crate::figures;
use crate::record::{Point, Report};
use crate::report::groups::Group;
use crate::report::sheets::{self, Shares};
use crate::report::turn::Turn;

/// Number of shares per arm.
const MOST: usize = 12;

/// Each arm's greatest shares at two points: its best one, and the fallen one or else the one with
/// the most clients. In an open loop no point is better than another: there the points are those
/// with the fewest and the most clients.
pub(super) fn shift(report: &Report, group: &Group<'_>, what: Shares) -> Option<Value> {
    let seen = |arm: &&&str| group.line(arm).iter().any(|point| !what.of(point).is_empty());
    let arms: Vec<Value> =
        group.arms.iter().filter(seen).map(|name| arm(report, group, name, what)).collect();
    let at = match group.is_open() {
        true => "with the fewest and with the most clients",
        false => "at the best point, and where it has fallen beyond or with the most clients",
    };
    (!arms.is_empty()).then(|| json!({ "title": format!("{}, {at}", what.title()), "arms": arms }))
}

fn arm(report: &Report, group: &Group<'_>, name: &str, what: Shares) -> Value {
    let line = group.line(name);
    let (names, points): (_, Vec<&Point>) = match group.turn(name) {
        _ if group.is_open() && line.len() > 1 => (["fewest", "most"], vec![line[0], line[line.len() - 1]]),
        _ if group.is_open() => (["fewest", "most"], line),
        Some(Turn { best, fallen: Some(fallen), .. }) => (["best", "worst"], vec![best, fallen]),
        Some(Turn { best, last, .. }) if best.clients < last.clients => (["best", "most"], vec![best, last]),
        Some(Turn { best, .. }) => (["best", "most"], vec![best]),
        None => (["best", "most"], Vec::new()),
    };
    let rows = sheets::shares(&points, what, MOST);
    let greatest = rows.iter().flat_map(|(_, shares)| shares).flatten().fold(0.0, |a: f64, b| a.max(*b));
    // The length of each bar, in percent of the longest.
    let bar = |share: &Option<f64>| {
        let length = share.map(|share| share / greatest * 100.0);
        let length = length.filter(|length| *length > 0.0 && *length <= 100.0);
        let text = share.map_or(figures::NONE.into(), figures::percent);
        json!({ "text": text, "length": length.map(|length| format!("{length:.1}")) })
    };
    let heads = points
        .iter()
        .zip(names)
        .map(|(point, which)| format!("{which}: {}", figures::clients(point.clients)));
    let row = |(name, shares): (String, Vec<Option<f64>>)| json!({ "name": name, "cells": shares.iter().map(bar).collect::<Vec<_>>() });
    json!({
        "name": name,
        "style": report.arm_number(name) % plot::STYLES,
        "heads": std::iter::once(what.key().into()).chain(heads).collect::<Vec<String>>(),
        "rows": rows.into_iter().map(row).collect::<Vec<_>>(),
    })
}
