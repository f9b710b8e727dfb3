//! The table at the end of a run: no line is wider than the terminal, unless a single column is.

use unicode_width::UnicodeWidthStr;

use super::groups::{Group, groups};
use super::sheets::{self, Block, Sheet};
use crate::figures::plain;
use crate::record::Report;

/// Longer names lose their middle, since names of varied arms begin alike.
const NAME_MAX: usize = 30;

/// The report as text, at most `width` columns wide.
pub fn table(report: &Report, width: usize) -> String {
    let mut text = String::new();
    list("Verdict:", &report.verdict, width, &mut text);
    let groups = groups(report);
    let title = |group: &Group<'_>| format!("{}\n\n", plain(&group.title()));
    for group in &groups {
        text.push_str(&title(group));
        write(&sheets::throughput(group, report), width, &mut text);
    }
    list("Findings:", &report.findings, width, &mut text);
    list("Missing:", &sheets::missing(report), width, &mut text);
    for group in &groups {
        if groups.len() > 1 {
            text.push_str(&title(group));
        }
        let rest = [
            Some(sheets::latency(group, report)),
            sheets::lag(group),
            sheets::failures(group),
            sheets::fits(group),
        ];
        rest.into_iter().flatten().for_each(|sheet| write(&sheet, width, &mut text));
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

pub(super) fn write(sheet: &Sheet, width: usize, text: &mut String) {
    text.push_str(&format!("{}\n", plain(&sheet.title)));
    let keys = Column::new(&sheet.key, &sheet.keys.iter().map(String::as_str).collect::<Vec<_>>());
    let blocks: Vec<Columns> = sheet.blocks.iter().flat_map(Columns::of).collect();
    let mut rest = &blocks[..];
    while !rest.is_empty() {
        let mut fit = 0;
        let mut used = keys.width;
        while fit < rest.len() && (fit == 0 || used + 3 + rest[fit].width <= width) {
            used += 3 + rest[fit].width;
            fit += 1;
        }
        lines(&keys, &rest[..fit], text);
        rest = &rest[fit..];
    }
}

/// Blocks side by side.
fn lines(keys: &Column, blocks: &[Columns], text: &mut String) {
    let mut line = |first: &str, cells: Vec<String>| {
        let joined = std::iter::once(pad(first, keys.width, keys.left)).chain(cells).collect::<Vec<_>>();
        text.push_str(joined.join(" | ").trim_end());
        text.push('\n');
    };
    if blocks.iter().any(|block| !block.name.is_empty()) {
        line("", blocks.iter().map(|block| pad(&block.name, block.width, true)).collect());
    }
    line(&keys.head, blocks.iter().map(|block| block.row(|column| &column.head)).collect());
    for at in 0..keys.cells.len() {
        line(&keys.cells[at], blocks.iter().map(|block| block.row(|column| &column.cells[at])).collect());
    }
    text.push('\n');
}

struct Columns {
    name: String,
    columns: Vec<Column>,
    width: usize,
}

impl Columns {
    /// The columns of a block; a block without a name may be divided anywhere.
    fn of(block: &Block) -> Vec<Self> {
        let all = 0..block.heads.len();
        match block.name.is_empty() {
            true => all.map(|at| Self::new(block, at..at + 1)).collect(),
            false => vec![Self::new(block, all)],
        }
    }

    fn new(block: &Block, columns: std::ops::Range<usize>) -> Self {
        let name = short(&block.name, NAME_MAX);
        let cells = |at: usize| block.rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>();
        let columns: Vec<_> = columns.map(|at| Column::new(&block.heads[at], &cells(at))).collect();
        let inner =
            columns.iter().map(|column| column.width).sum::<usize>() + 2 * columns.len().saturating_sub(1);
        let width = inner.max(name.width());
        Self { name, columns, width }
    }

    fn row<'a>(&'a self, of: impl Fn(&'a Column) -> &'a String) -> String {
        let cells: Vec<_> =
            self.columns.iter().map(|column| pad(of(column), column.width, column.left)).collect();
        pad(&cells.join("  "), self.width, true)
    }
}

struct Column {
    head: String,
    cells: Vec<String>,
    width: usize,
    /// Whether it holds words, which are aligned left.
    left: bool,
}

impl Column {
    fn new(head: &str, cells: &[&str]) -> Self {
        let cells: Vec<String> = cells.iter().map(|cell| short(cell, NAME_MAX)).collect();
        // The head names both sides of a ratio.
        let sides: Vec<&str> = head.split(" / ").collect();
        let head =
            sides.iter().map(|side| short(side, NAME_MAX / sides.len())).collect::<Vec<_>>().join(" / ");
        let width = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(head.width());
        let number =
            |cell: &String| cell.starts_with(|one: char| one.is_ascii_digit() || "±-–".contains(one));
        let left = cells.iter().any(|cell| !cell.is_empty() && !number(cell) && cell != "no difference");
        Self { head, cells, width, left }
    }
}

fn pad(text: &str, width: usize, left: bool) -> String {
    let fill = " ".repeat(width.saturating_sub(text.width()));
    if left { format!("{text}{fill}") } else { format!("{fill}{text}") }
}

/// Cuts the middle out of a text longer than this many columns.
fn short(text: &str, most: usize) -> String {
    let text = plain(text);
    if text.width() <= most {
        return text;
    }
    let half = most / 2;
    let part = |chars: &mut dyn Iterator<Item = char>| {
        let mut part = String::new();
        for one in chars {
            if part.width() + one.to_string().width() >= half {
                break;
            }
            part.push(one);
        }
        part
    };
    let head = part(&mut text.chars());
    let tail: String = part(&mut text.chars().rev()).chars().rev().collect();
    format!("{head}…{tail}")
}
