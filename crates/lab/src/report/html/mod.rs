//! The report as one page that needs nothing else: no script, no font, no style from elsewhere, plots as SVG in it. The
//! page says so to the browser, which then refuses any.

mod axis;
mod charts;
mod markup;
mod plot;
mod tables;
#[cfg(test)]
mod tests;

use super::groups::{Group, groups};
use super::sheets::{self, Shares};
use crate::record::Report;
use charts::Charts;
use markup::Markup;

/// The page.
pub fn html(report: &Report) -> String {
    let mut page = Markup::default();
    page.verbatim("<!DOCTYPE html>\n");
    page.element("html", &[("lang", &"en")], |page| {
        page.element("head", &[], |page| head(page, report));
        page.element("body", &[], |page| body(page, report));
    });
    page.into_text()
}

/// The main plots of each workload as files of their own: a name that ends in `.svg`, and its text.
pub fn pictures(report: &Report) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    for (at, group) in groups(report).iter().enumerate() {
        let charts = Charts { report, group, id: format!("w{at}") };
        let stem: String = group
            .title()
            .chars()
            .map(|one| if one.is_alphanumeric() || one == '_' { one } else { '-' })
            .collect();
        let stem = stem.replace("--", "-");
        pictures.extend(charts.pictures().into_iter().map(|(what, svg)| (format!("{stem}-{what}.svg"), svg)));
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

fn head(page: &mut Markup, report: &Report) {
    page.empty("meta", &[("charset", &"utf-8")]);
    let only = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
    page.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &only)]);
    page.empty("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    page.empty("link", &[("rel", &"icon"), ("href", &"data:,")]);
    page.leaf("title", &[], title(report));
    page.element("style", &[], |page| page.verbatim(include_str!("style.css")));
}

fn body(page: &mut Markup, report: &Report) {
    let groups = groups(report);
    page.element("header", &[], |page| {
        page.leaf("h1", &[], title(report));
        page.leaf("p", &[("class", &"faint")], format!("Began {}", report.began));
        if !report.command.is_empty() {
            page.element("p", &[], |page| page.leaf("code", &[], report.command.join(" ")));
        }
    });
    page.element("main", &[], |page| {
        summary(page, report, &groups);
        for (at, group) in groups.iter().enumerate() {
            workload(page, report, group, &format!("w{at}"));
        }
        setting(page, report);
    });
}

fn summary(page: &mut Markup, report: &Report, groups: &[Group<'_>]) {
    page.leaf("h2", &[("id", &"summary")], "Summary");
    lines(page, "findings", &report.findings);
    let broken = sheets::broken_checks(report);
    if !broken.is_empty() {
        page.leaf("h3", &[("class", &"bad")], "Broken checks");
        lines(page, "findings", &broken);
    }
    let missing = sheets::missing(report);
    if !missing.is_empty() {
        page.leaf("h3", &[], "Missing");
        lines(page, "missing", &missing);
    }
    if groups.is_empty() {
        page.leaf("p", &[], "Nothing was measured.");
    }
    for sheet in groups.iter().filter_map(|group| sheets::glance(group, report)) {
        tables::sheet(page, &sheet);
    }
    if groups.len() > 1 {
        page.element("nav", &[("aria-label", &"Workloads")], |page| {
            page.element("ul", &[], |page| {
                for (at, group) in groups.iter().enumerate() {
                    let to = format!("#w{at}");
                    page.element("li", &[], |page| page.leaf("a", &[("href", &to)], group.title()));
                }
            });
        });
    }
}

fn lines(page: &mut Markup, class: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    page.element("ul", &[("class", &class)], |page| {
        for line in lines {
            page.leaf("li", &[], line);
        }
    });
}

fn workload(page: &mut Markup, report: &Report, group: &Group<'_>, id: &str) {
    page.element("section", &[("aria-labelledby", &id)], |page| {
        page.leaf("h2", &[("id", &id)], group.title());
        Charts { report, group, id: id.to_string() }.draw(page);
        for what in [Shares::Symbols, Shares::Waits] {
            tables::shifts(page, report, group, what);
        }
        for sheet in [sheets::checks(group), sheets::errors(group), sheets::fits(group)].into_iter().flatten()
        {
            tables::sheet(page, &sheet);
        }
        lines(page, "missing", &sheets::doubts(group));
        tables::sheet(page, &sheets::throughput(group, report));
        page.element("details", &[], |page| {
            page.leaf("summary", &[], "All other numbers");
            let all = [
                Some(sheets::latency(group, report)),
                Some(sheets::more_latency(group)),
                sheets::lag(group),
                sheets::failures(group),
                sheets::kinds(group),
                sheets::cpu(group),
                Some(sheets::costs(group)),
            ];
            let shares =
                |what| group.arms.iter().filter_map(move |arm| sheets::shares_sheet(group, arm, what));
            let all = all.into_iter().flatten().chain(shares(Shares::Symbols)).chain(shares(Shares::Waits));
            for sheet in all.chain(sheets::rounds(group)) {
                tables::sheet(page, &sheet);
            }
        });
    });
}

/// What was measured, how, and on what.
fn setting(page: &mut Markup, report: &Report) {
    page.leaf("h2", &[("id", &"setting")], "Arms, load and machine");
    page.element("div", &[("class", &"cards")], |page| {
        for arm in &report.arms {
            page.element("div", &[("class", &"card")], |page| {
                page.leaf("h4", &[], &arm.name);
                page.leaf("p", &[], &arm.server);
                facts(page, &arm.settings);
            });
        }
        if !report.load.is_empty() {
            page.element("div", &[("class", &"card")], |page| {
                page.leaf("h4", &[], "Load");
                facts(page, &report.load);
            });
        }
        page.element("div", &[("class", &"card")], |page| {
            page.leaf("h4", &[], "Machine");
            facts(page, &report.machine.facts);
            if let Some(noise) = sheets::noise(report) {
                page.leaf("p", &[], format!("Noise: {noise}."));
            }
        });
    });
}

fn facts(page: &mut Markup, facts: &[(String, String)]) {
    if facts.is_empty() {
        return;
    }
    page.element("dl", &[], |page| {
        for (name, value) in facts {
            page.leaf("dt", &[], name);
            page.leaf("dd", &[], value);
        }
    });
}
