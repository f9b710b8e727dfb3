//! The report as Markdown, with the tables that code hosts render.

use serde_json::json;

use super::groups::{Group, groups};
use super::sheets::{self, Shares};
use super::templates::render_run;
use crate::record::Report;

/// The whole report.
pub fn markdown(report: &Report) -> String {
    let section = |group: Group<'_>| {
        let all = [
            sheets::fits(&group),
            Some(sheets::latency(&group, report)),
            Some(sheets::more_latency(&group)),
            sheets::lag(&group),
            sheets::failures(&group),
            sheets::errors(&group),
            sheets::kinds(&group),
            sheets::checks(&group),
            sheets::cpu(&group),
            Some(sheets::costs(&group)),
        ];
        let shares = [Shares::Symbols, Shares::Waits].map(|what| sheets::all_shares(&group, what)).concat();
        json!({
            "title": group.title(),
            "sheets": all.into_iter().flatten().collect::<Vec<_>>(),
            "lead": sheets::throughput(&group, report),
            "shares": shares,
        })
    };
    render_run("run.md", report, "", groups(report).into_iter().map(section).collect())
}
