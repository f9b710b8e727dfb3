//! The report as one self-contained page: no scripts, no external fonts or styles, plots as inline
//! SVG. The page's policy makes the browser refuse all of these. The same values make Markdown.

mod axis;
mod charts;
mod parts;
mod plot;
#[cfg(test)]
mod tests;

pub use parts::{Page, Part};
use serde_json::{Value, json};

use super::groups::groups;
use super::sheets;
use super::templates::render;
use crate::record::Report;

pub fn html(report: &Report) -> String {
    render("page.html", values(report))
}

/// The report as Markdown, with the tables that code hosts render.
pub fn markdown(report: &Report) -> String {
    render("run.md", values(report))
}

/// The main plots of each workload as separate files: a description, a name that ends in `.svg`,
/// and their text.
pub fn pictures(report: &Report) -> Vec<(&'static str, String, String)> {
    let mut pictures = Vec::new();
    for group in groups(report) {
        let letter = |one: char| if one.is_alphanumeric() || one == '_' { one } else { '-' };
        let stem = group.title().chars().map(letter).collect::<String>().replace("--", "-");
        let drawn = charts::pictures(&group).into_iter();
        pictures.extend(drawn.map(|(what, svg)| (what, format!("{stem}-{what}.svg"), svg)));
    }
    pictures
}

/// All that the templates of a run ask for.
fn values(report: &Report) -> Value {
    let workloads = groups(report).into_iter().enumerate().map(|(at, group)| {
        json!({
            "id": format!("w{at}"),
            "title": group.title(),
            "lead": charts::lead(&group),
            "plots": charts::sections(&group),
            "throughput": sheets::throughput(&group),
            "main": sheets::main(&group),
            "shares": sheets::shares(&group),
            "rest": sheets::rest(&group),
        })
    });
    let arms: Vec<&str> = report.arms.iter().map(|arm| arm.name.as_str()).collect();
    json!({
        "title": format!("allcore bench: {}", arms.join(", ")).trim_end_matches(": "),
        "began": report.began,
        "command": report.command.join(" "),
        "verdict": report.verdict,
        "findings": report.findings,
        "missing": sheets::missing(report),
        "workloads": workloads.collect::<Vec<_>>(),
        "arms": report.arms,
        "load": report.load,
        "machine": report.machine.facts,
        "noise": sheets::noise(report),
    })
}
