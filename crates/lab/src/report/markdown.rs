//! The report as Markdown: tables with pipes, as code hosts show them.

use super::Report;
use super::groups::{Group, groups};
use super::sheets::{self, Shares, Sheet};

/// The whole report.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# Run of {}\n\n", plain(&report.began));
    if !report.command.is_empty() {
        text.push_str(&format!("    {}\n\n", one_line(&report.command.join(" "))));
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
        text.push_str(&format!("- **{}**: {}\n", plain(&arm.name), plain(&arm.server)));
        for (name, value) in &arm.settings {
            text.push_str(&format!("  - {}: {}\n", plain(name), plain(value)));
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
    text.push_str(&format!("## {}\n\n", plain(&group.title())));
    let all = [
        Some(sheets::throughput(group, report)),
        sheets::fits(group),
        Some(sheets::latency(group)),
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
        text.push_str(&format!("- {}\n", plain(line)));
    }
    text.push('\n');
}

fn facts(title: &str, facts: &[(String, String)], text: &mut String) {
    if facts.is_empty() {
        return;
    }
    text.push_str(&format!("\n## {title}\n\n"));
    for (name, value) in facts {
        text.push_str(&format!("- {}: {}\n", plain(name), plain(value)));
    }
}

fn table(sheet: &Sheet, text: &mut String) {
    text.push_str(&format!("### {}\n\n| {} |", plain(&sheet.title), plain(&sheet.key)));
    let mut rule = String::from("\n|---:|");
    for block in &sheet.blocks {
        for head in &block.heads {
            text.push_str(&format!(" {} |", plain(format!("{} {head}", block.name).trim())));
            rule.push_str("---:|");
        }
    }
    text.push_str(&rule);
    text.push('\n');
    for (at, key) in sheet.keys.iter().enumerate() {
        text.push_str(&format!("| {} |", plain(key)));
        for cell in sheet.blocks.iter().flat_map(|block| &block.rows[at]) {
            text.push_str(&format!(" {} |", plain(cell)));
        }
        text.push('\n');
    }
    text.push('\n');
}

/// Without control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

/// On one line, with what Markdown or HTML would take for its own put out of action.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for one in one_line(text).chars() {
        match one {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '~' => plain.extend(['\\', one]),
            one => plain.push(one),
        }
    }
    plain
}
