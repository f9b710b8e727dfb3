//! EXPLAIN (FORMAT TEXT).

use super::node::{Detail, Node, NodeFigures};
use super::{COST_UNIT, Figures, Memory, Result, SHOWING, milliseconds};
use crate::plan::ExplainOptions;
use values::work;

/// The lines of a plan and of what EXPLAIN shows beside it.
pub(super) fn lines(node: &Node, options: ExplainOptions, figures: &Figures) -> Result<Vec<String>> {
    let mut text = Text { options, lines: Vec::new() };
    text.node(node, 0)?;
    if !figures.settings.is_empty() {
        let shown: Vec<String> =
            figures.settings.iter().map(|(name, value)| format!("{name} = '{value}'")).collect();
        text.lines.push(format!("Settings: {}", shown.join(", ")));
    }
    if options.summary {
        text.lines.push(format!("Planning Time: {:.3} ms", milliseconds(figures.planning, 1)));
        if let Some((execution, _)) = &figures.execution {
            text.lines.push(format!("Execution Time: {:.3} ms", milliseconds(*execution, 1)));
        }
    }
    Ok(text.lines)
}

struct Text {
    options: ExplainOptions,
    lines: Vec<String>,
}

impl Text {
    /// Writes a node at a depth, in steps of two spaces.
    fn node(&mut self, node: &Node, depth: usize) -> Result<()> {
        // A line's length grows with the node's depth.
        work::tick(SHOWING + depth * (1 + node.details.len()))?;
        let arrow = if depth > 0 { "->  " } else { "" };
        let figures = node.figures.as_ref().map_or_else(String::new, |figures| self.figures(figures));
        self.lines.push(format!("{:1$}{arrow}{2}{figures}", "", depth * 2, node.title));
        let inside = if depth > 0 { depth + 3 } else { 1 };
        for (label, detail) in &node.details {
            let shown = match detail {
                Detail::Text(text) => text.clone(),
                Detail::List(list) => list.join(", "),
            };
            self.detail(inside, format_args!("{label}: {shown}"));
            if let ("Filter", Some(removed)) = (*label, node.removed.filter(|removed| *removed > 0.0)) {
                self.detail(inside, format_args!("Rows Removed by Filter: {removed:.0}"));
            }
        }
        if let Some(kept) = &node.kept {
            let Memory { hits, misses, evictions, overflows, bytes, .. } = kept;
            self.detail(
                inside,
                format_args!(
                    "Hits: {hits}  Misses: {misses}  Evictions: {evictions}  Overflows: {overflows}  \
                     Memory Usage: {}kB",
                    bytes.div_ceil(1024)
                ),
            );
        }
        if node.figures.is_some_and(|figures| figures.disabled) {
            self.detail(inside, format_args!("Disabled: true"));
        }
        if let Some(actual) = node.figures.and_then(|figures| figures.actual).filter(|_| self.options.buffers)
        {
            let shown = [("hit", actual.pages.hit()), ("read", actual.pages.read)];
            let shown = shown.into_iter().filter(|(_, pages)| *pages > 0);
            let shown: Vec<String> = shown.map(|(name, pages)| format!("{name}={pages}")).collect();
            if !shown.is_empty() {
                self.detail(inside, format_args!("Buffers: shared {}", shown.join(" ")));
            }
        }
        for child in node.ordered_children() {
            match child.role.label() {
                Some(label) => {
                    self.detail(inside, format_args!("{label}"));
                    self.node(&child.node, inside + 1)?;
                }
                None => self.node(&child.node, inside)?,
            }
        }
        Ok(())
    }

    fn detail(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        self.lines.push(format!("{:1$}{text}", "", depth * 2));
    }

    fn figures(&self, figures: &NodeFigures) -> String {
        let mut shown = String::new();
        if self.options.costs {
            let (estimate, width) = (&figures.estimate, figures.width);
            let (start, cost) = (estimate.start * COST_UNIT, estimate.cost * COST_UNIT);
            shown = format!("  (cost={start:.2}..{cost:.2} rows={:.0} width={width})", estimate.rows);
        }
        let Some(actual) = &figures.actual else { return shown };
        let loops = actual.loops;
        if loops == 0 {
            return shown + " (never executed)";
        }
        let time = match self.options.timing {
            true => {
                let (start, total) = (milliseconds(actual.start, loops), milliseconds(actual.total, loops));
                format!("time={start:.3}..{total:.3} ")
            }
            false => String::new(),
        };
        let rows = actual.rows as f64 / loops as f64;
        shown + &format!(" (actual {time}rows={rows:.2} loops={loops})")
    }
}
