//! The report as one self-contained page: no scripts, no external fonts or styles, plots as inline
//! SVG. The page's policy makes the browser refuse all of these.

mod axis;
mod charts;
mod plot;
mod shift;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use super::groups::{Group, groups};
use super::sheets::{self, Shares};
use super::templates::render_run;
use crate::record::Report;
use charts::Charts;

/// The page.
pub fn html(report: &Report) -> String {
    let groups = groups(report);
    let workloads = groups.iter().enumerate().map(|(at, group)| workload(report, group, format!("w{at}")));
    render_run("page.html", report, &title(report), workloads.collect())
}

/// The main plots of each workload as separate files: a description, a name that ends in `.svg`,
/// and their text.
pub fn pictures(report: &Report) -> Vec<(&'static str, String, String)> {
    let mut pictures = Vec::new();
    for (at, group) in groups(report).iter().enumerate() {
        let letter = |one: char| if one.is_alphanumeric() || one == '_' { one } else { '-' };
        let stem = group.title().chars().map(letter).collect::<String>().replace("--", "-");
        let drawn = Charts { report, group, id: format!("w{at}") }.pictures();
        pictures.extend(drawn.into_iter().map(|(what, svg)| (what, format!("{stem}-{what}.svg"), svg)));
    }
    pictures
}

fn title(report: &Report) -> String {
    let mut names: Vec<&str> = report.arms.iter().map(|arm| arm.name.as_str()).collect();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    match (names.is_empty(), more) {
        (true, _) => "allcore bench".into(),
        (_, 0) => format!("allcore bench: {}", names.join(", ")),
        _ => format!("allcore bench: {} and {more} more", names.join(", ")),
    }
}

fn workload(report: &Report, group: &Group<'_>, id: String) -> Value {
    let all = [
        Some(sheets::latency(group, report)),
        Some(sheets::more_latency(group)),
        sheets::lag(group),
        sheets::failures(group),
        sheets::kinds(group),
        sheets::cpu(group),
        Some(sheets::costs(group)),
    ];
    let both = [Shares::Symbols, Shares::Waits];
    let shifts = both.into_iter().filter_map(|what| shift::shift(report, group, what));
    let shares = both.map(|what| sheets::all_shares(group, what)).concat();
    let charts = Charts { report, group, id: id.clone() };
    let first = [sheets::checks(group), sheets::errors(group), sheets::fits(group)];
    json!({
        "title": group.title(),
        "lead": charts.lead(),
        "plots": charts.sections(),
        "shifts": shifts.collect::<Vec<_>>(),
        "first": first.into_iter().flatten().collect::<Vec<_>>(),
        "throughput": sheets::throughput(group, report),
        "rest": all.into_iter().flatten().chain(shares).collect::<Vec<_>>(),
        "id": id,
    })
}
