//! The table at the end of a run, no wider than the terminal.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::groups::{Group, groups};
use super::sheets::{self, Sheet};
use crate::figures::plain;
use crate::record::Report;

/// The report as text, at most `width` columns wide.
pub fn table(report: &Report, width: usize) -> String {
    let mut text = String::new();
    list("Verdict:", &report.verdict, width, &mut text);
    let groups = groups(report);
    let title = |group: &Group<'_>| format!("{}\n\n", plain(&group.title()));
    for group in &groups {
        text.push_str(&title(group));
        sheets::throughput(group).iter().for_each(|sheet| write(sheet, width, &mut text));
    }
    list("Findings:", &report.findings, width, &mut text);
    list("Missing:", &sheets::missing(report), width, &mut text);
    for group in &groups {
        if groups.len() > 1 {
            text.push_str(&title(group));
        }
        sheets::main(group).iter().for_each(|sheet| write(sheet, width, &mut text));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

pub(super) fn list(title: &str, lines: &[String], width: usize, text: &mut String) {
    if lines.is_empty() {
        return;
    }
    text.push_str(title);
    text.push('\n');
    let options = textwrap::Options::new(width.max(20)).initial_indent("- ").subsequent_indent("  ");
    for line in lines {
        text.push_str(&textwrap::fill(&plain(line), &options));
        text.push('\n');
    }
    text.push('\n');
}

/// A table of text for the terminal, at most `width` columns wide; empty without rows. Columns
/// without any value are left out.
pub fn sheet(title: &str, heads: &[&str], rows: Vec<Vec<String>>, width: usize) -> String {
    let mut text = String::new();
    if let Some(sheet) = Sheet::new(title, heads, rows) {
        write(&sheet, width, &mut text);
    }
    text
}

/// Writes a table; cells wrap where it would be wider than `width`.
pub(super) fn write(sheet: &Sheet, width: usize, text: &mut String) {
    let line = |cells: &[String]| cells.iter().map(|cell| plain(cell)).collect::<Vec<_>>();
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width.try_into().unwrap_or(u16::MAX));
    table.set_header(line(&sheet.heads)).add_rows(sheet.rows.iter().map(|row| line(row)));
    let is_number = |cell: &str| cell.starts_with(|one: char| one.is_ascii_digit() || "±-–".contains(one));
    for (at, column) in table.column_iter_mut().enumerate() {
        if sheet.rows.iter().all(|row| row[at].is_empty() || is_number(&row[at])) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    text.push_str(&format!("{}\n\n{table}\n\n", plain(&sheet.title)));
}
