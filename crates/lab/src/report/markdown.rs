//! The report as Markdown: tables with pipes, as code hosts show them.

use super::groups::{Group, groups};
use super::sheets::{self, Shares, Sheet};
use crate::figures;
use crate::record::Report;

/// The whole report.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# Run of {}\n\n", escaped(&report.began));
    if !report.command.is_empty() {
        text.push_str(&format!("    {}\n\n", figures::plain(&report.command.join(" "))));
    }
    list("Findings", &report.findings, &mut text);
    list("Broken checks", &sheets::broken_checks(report), &mut text);
    list("Missing", &sheets::missing(report), &mut text);
    for group in groups(report) {
        section(&group, report, &mut text);
    }
    if report.points.is_empty() {
        text.push_str("Nothing was measured.\n\n");
    }
    text.push_str("## Arms\n\n");
    for arm in &report.arms {
        text.push_str(&format!("- **{}**: {}\n", escaped(&arm.name), escaped(&arm.server)));
        for (name, value) in &arm.settings {
            text.push_str(&format!("  - {}: {}\n", escaped(name), escaped(value)));
        }
    }
    facts("Load", &report.load, &mut text);
    facts("Machine", &report.machine.facts, &mut text);
    if let Some(noise) = sheets::noise(report) {
        text.push_str(&format!("\nNoise: {noise}.\n"));
    }
    text
}

fn section(group: &Group<'_>, report: &Report, text: &mut String) {
    text.push_str(&format!("## {}\n\n", escaped(&group.title())));
    let all = [
        Some(sheets::throughput(group, report)),
        sheets::fits(group),
        Some(sheets::latency(group, report)),
        Some(sheets::more_latency(group)),
        sheets::lag(group),
        sheets::failures(group),
        sheets::errors(group),
        sheets::kinds(group),
        sheets::checks(group),
        sheets::cpu(group),
        Some(sheets::costs(group)),
    ];
    for sheet in all.into_iter().flatten() {
        table(&sheet, text);
    }
    list("Mind the curves", &sheets::doubts(group), text);
    for what in [Shares::Symbols, Shares::Waits] {
        for sheet in group.arms.iter().filter_map(|arm| sheets::shares_sheet(group, arm, what)) {
            table(&sheet, text);
        }
    }
}

fn list(title: &str, lines: &[String], text: &mut String) {
    if lines.is_empty() {
        return;
    }
    text.push_str(&format!("**{title}**\n\n"));
    for line in lines {
        text.push_str(&format!("- {}\n", escaped(line)));
    }
    text.push('\n');
}

fn facts(title: &str, facts: &[(String, String)], text: &mut String) {
    if facts.is_empty() {
        return;
    }
    text.push_str(&format!("\n## {title}\n\n"));
    for (name, value) in facts {
        text.push_str(&format!("- {}: {}\n", escaped(name), escaped(value)));
    }
}

fn table(sheet: &Sheet, text: &mut String) {
    text.push_str(&format!("### {}\n\n| {} |", escaped(&sheet.title), escaped(&sheet.key)));
    let mut rule = String::from("\n|---:|");
    for block in &sheet.blocks {
        for head in &block.heads {
            text.push_str(&format!(" {} |", escaped(format!("{} {head}", block.name).trim())));
            rule.push_str("---:|");
        }
    }
    text.push_str(&rule);
    text.push('\n');
    for (at, key) in sheet.keys.iter().enumerate() {
        text.push_str(&format!("| {} |", escaped(key)));
        for cell in sheet.blocks.iter().flat_map(|block| &block.rows[at]) {
            text.push_str(&format!(" {} |", escaped(cell)));
        }
        text.push('\n');
    }
    text.push('\n');
}

/// On one line, with what Markdown or HTML would take for its own put out of action.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in figures::plain(text).chars() {
        match one {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' => escaped.extend(['\\', one]),
            one => escaped.push(one),
        }
    }
    escaped
}
