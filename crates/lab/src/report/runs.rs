//! Several stored runs of the same servers on one page of Markdown: docs/results.md is one.

use serde_json::{Value, json};

use super::groups::groups;
use super::sheets;
use super::templates::render;
use crate::figures;
use crate::record::{Arm, Interval, Point, Report, Verdict};

#[derive(Debug)]
pub struct Stored {
    /// Its heading on the page.
    pub name: String,
    pub report: Report,
    /// Its plots: a description of each, and its file as the page names it.
    pub plots: Vec<(&'static str, String)>,
}

/// The page. It compares the first arm of the first run with the best of the others.
pub fn runs(runs: &[Stored]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let mut counts: Vec<usize> =
        runs.iter().flat_map(|run| &run.report.points).map(|point| point.clients).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut arms = first.report.arms.iter().map(|arm| arm.name.as_str());
    let lasting = first.report.machine.facts.iter().filter(|(name, _)| !name.ends_with(" at start")).cloned();
    let values = json!({
        "first": arms.next(),
        "others": arms.collect::<Vec<_>>(),
        "about": lasting.chain(first.report.arms.iter().map(server)).collect::<Vec<_>>(),
        "counts": counts.iter().map(|count| figures::whole(*count as f64)).collect::<Vec<_>>(),
        "runs": runs.iter().map(|run| section(run, &counts)).collect::<Vec<_>>(),
    });
    render("runs.md", values)
}

/// An arm and its server: the version without build details, and the settings.
fn server(arm: &Arm) -> (String, String) {
    let version = arm.server.split(" on ").next().unwrap_or_default().to_owned();
    let settings = arm.settings.iter().map(|(name, value)| format!("{name} {value}"));
    (arm.name.clone(), std::iter::once(version).chain(settings).collect::<Vec<_>>().join(", "))
}

fn section(run: &Stored, counts: &[usize]) -> Value {
    let Stored { name, report, plots } = run;
    let arms: Vec<&str> = report.arms.iter().map(|arm| arm.name.as_str()).collect();
    let point =
        |arm: &str, clients: usize| report.points.iter().find(|one| one.arm == arm && one.clients == clients);
    let none = || figures::NONE.to_owned();
    let summary = |clients: &usize| match best(report, *clients) {
        Some(ratio) if ratio.verdict() == Verdict::None => format!("({})", figures::factor(ratio.value)),
        Some(ratio) => figures::factor(ratio.value),
        None => none(),
    };
    let measured = counts.iter().filter(|clients| arms.iter().any(|arm| point(arm, **clients).is_some()));
    let row = |clients: &usize, cell: fn(&Point) -> String| -> Vec<String> {
        let cells = arms.iter().map(|arm| point(arm, *clients).map_or_else(none, cell));
        std::iter::once(figures::whole(*clients as f64)).chain(cells).collect()
    };
    let rows = measured.clone().map(|clients| {
        let ratio = best(report, *clients).map_or_else(none, |ratio| {
            let no = if ratio.verdict() == Verdict::None { ", no difference" } else { "" };
            format!("{}{no}", figures::bounded(&ratio, figures::factor))
        });
        row(clients, tps).into_iter().chain([ratio]).collect::<Vec<_>>()
    });
    let load: Vec<String> = report.load.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let titles: Vec<String> = groups(report).iter().map(|group| group.title()).collect();
    json!({
        "name": name,
        "title": format!("{}; {}", titles.join(" and "), load.join(", ")),
        "began": report.began.split('T').next(),
        "arms": arms,
        "summary": counts.iter().map(summary).collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "costs": measured.clone().map(|clients| row(clients, cost)).collect::<Vec<_>>(),
        "cpu": measured.map(|clients| row(clients, cpu)).collect::<Vec<_>>(),
        "plots": plots,
        "verdict": report.verdict,
        "findings": report.findings,
        "missing": sheets::missing(report),
    })
}

/// The ratio of the first arm to the best of the others, at this many clients.
fn best(report: &Report, clients: usize) -> Option<Interval> {
    let ratios =
        report.points.iter().filter(|point| point.clients == clients).filter_map(|point| point.ratio);
    let best = ratios.max_by(|one, other| one.value.total_cmp(&other.value))?;
    Some(Interval { value: 1.0 / best.value, low: 1.0 / best.high, high: 1.0 / best.low })
}

fn tps(point: &Point) -> String {
    let spread = figures::spread(&point.tps).replace('±', " ± ");
    let spread = if spread.is_empty() { ", one round".to_owned() } else { spread };
    format!("{}{spread}", figures::number(point.tps.value))
}

/// The server's CPU time for each transaction in microseconds: its own and the kernel's.
fn cost(point: &Point) -> String {
    point.server_cpu().map_or_else(
        || figures::NONE.into(),
        |cpu| format!("{} + {}", figures::number(cpu.user), figures::number(cpu.kernel)),
    )
}

fn cpu(point: &Point) -> String {
    let Some(cpu) = point.cpu() else { return figures::NONE.into() };
    let parts = [cpu.server_user + cpu.server_kernel, cpu.client, cpu.other, cpu.idle];
    parts.map(|part| format!("{:.0}", 100.0 * part)).join(", ")
}
