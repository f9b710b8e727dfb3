//! Tables: a sheet's blocks stand beside each other where there is room, below each other where there isn't.

use super::markup::Markup;
use super::plot;
use crate::figures;
use crate::record::{Point, Report};
use crate::report::groups::Group;
use crate::report::sheets::{self, Block, Shares, Sheet};
use crate::report::turn::Turn;

/// How many shares are drawn of an arm.
const MOST: usize = 12;

/// A sheet under its title.
pub(super) fn sheet(page: &mut Markup, sheet: &Sheet) {
    page.leaf("h3", &[], &sheet.title);
    page.element("div", &[("class", &"sheet")], |page| {
        for block in &sheet.blocks {
            // What scrolls must be reachable by keyboard.
            let of = if block.name.is_empty() { &sheet.title } else { &block.name };
            let region: [(&str, &dyn std::fmt::Display); 3] =
                [("tabindex", &"0"), ("role", &"region"), ("aria-label", of)];
            page.element("div", &region, |page| table(page, sheet, block));
        }
    });
}

fn table(page: &mut Markup, sheet: &Sheet, block: &Block) {
    let class = if sheet.is_words() { "words" } else { "numbers" };
    page.element("table", &[("class", &class)], |page| {
        if !block.name.is_empty() {
            page.leaf("caption", &[], &block.name);
        }
        page.element("thead", &[], |page| {
            page.element("tr", &[], |page| {
                for head in std::iter::once(&sheet.key).chain(&block.heads) {
                    page.leaf("th", &[("scope", &"col")], head);
                }
            });
        });
        page.element("tbody", &[], |page| {
            for (key, row) in sheet.keys.iter().zip(&block.rows) {
                page.element("tr", &[], |page| {
                    page.leaf("th", &[("scope", &"row")], key);
                    for (head, cell) in block.heads.iter().zip(row) {
                        let bad = if cell.starts_with(sheets::BROKEN) { "bad" } else { "" };
                        page.element("td", &[("data-head", head)], |page| {
                            page.leaf("span", &[("class", &bad)], cell);
                        });
                    }
                });
            }
        });
    });
}

/// Each arm's greatest shares at its best point, and where throughput has fallen beyond or else with the most clients, as bars. In an open loop no point is better than
/// another: there it is at those with the fewest and the most clients.
pub(super) fn shifts(page: &mut Markup, report: &Report, group: &Group<'_>, what: Shares) {
    let seen = |arm: &&&str| group.line(arm).iter().any(|point| !what.of(point).is_empty());
    let arms: Vec<&str> = group.arms.iter().filter(seen).copied().collect();
    if arms.is_empty() {
        return;
    }
    let at = match group.is_open() {
        true => "with the fewest and with the most clients",
        false => "at the best point, and where it has fallen beyond or with the most clients",
    };
    page.leaf("h3", &[], format!("{}, {at}", what.title()));
    page.element("div", &[("class", &"plots")], |page| {
        for arm in arms {
            page.element("figure", &[], |page| shift(page, report, group, arm, what));
        }
    });
}

fn shift(page: &mut Markup, report: &Report, group: &Group<'_>, arm: &str, what: Shares) {
    page.leaf("figcaption", &[], arm);
    let line = group.line(arm);
    let (names, points): (_, Vec<&Point>) = match group.turn(arm) {
        _ if group.is_open() && line.len() > 1 => (["fewest", "most"], vec![line[0], line[line.len() - 1]]),
        _ if group.is_open() => (["fewest", "most"], line),
        Some(Turn { best, fallen: Some(fallen), .. }) => (["best", "worst"], vec![best, fallen]),
        Some(Turn { best, last, .. }) if best.clients < last.clients => (["best", "most"], vec![best, last]),
        Some(Turn { best, .. }) => (["best", "most"], vec![best]),
        None => (["best", "most"], Vec::new()),
    };
    let rows = sheets::shares(&points, what, MOST);
    if rows.is_empty() {
        page.leaf("p", &[("class", &"faint")], "Not seen at these points.");
        return;
    }
    let greatest = rows.iter().flat_map(|(_, shares)| shares).flatten().fold(0.0, |a: f64, b| a.max(*b));
    let class = format!("bars a{}", report.arm_number(arm) % plot::STYLES);
    page.element("table", &[("class", &class)], |page| {
        page.element("thead", &[], |page| {
            page.element("tr", &[], |page| {
                page.leaf("th", &[("scope", &"col")], what.key());
                for (point, which) in points.iter().zip(names) {
                    page.leaf(
                        "th",
                        &[("scope", &"col")],
                        format!("{which}: {}", figures::clients(point.clients)),
                    );
                }
            });
        });
        page.element("tbody", &[], |page| {
            for (name, shares) in &rows {
                page.element("tr", &[], |page| {
                    page.leaf("th", &[("scope", &"row")], name);
                    for (share, which) in shares.iter().zip(["best", "worst"]) {
                        page.element("td", &[("class", &which)], |page| bar(page, *share, greatest));
                    }
                });
            }
        });
    });
}

fn bar(page: &mut Markup, share: Option<f64>, greatest: f64) {
    page.text(share.map_or(figures::NONE.into(), figures::percent));
    let length =
        share.map(|share| share / greatest * 100.0).filter(|length| *length > 0.0 && *length <= 100.0);
    if let Some(length) = length {
        page.leaf("span", &[("class", &"bar"), ("style", &format!("width: {length:.1}%"))], "");
    }
}
