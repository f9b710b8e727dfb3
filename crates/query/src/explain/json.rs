//! EXPLAIN (FORMAT JSON).

use super::node::{Child, Detail, Node, NodeFigures};
use super::{COST_UNIT, Figures, Result, SHOWING, milliseconds};
use crate::plan::ExplainOptions;
use values::work;

/// The document of a plan and of what EXPLAIN shows beside it.
pub(super) fn document(node: &Node, options: ExplainOptions, figures: &Figures) -> Result<String> {
    let mut json = Json { options, text: String::from("["), depth: 1, begun: false };
    json.element('{');
    json.key("Plan");
    json.open('{');
    json.node(node, None)?;
    json.close('}');
    if options.settings {
        json.key("Settings");
        json.open('{');
        for (name, value) in &figures.settings {
            json.string(name, value);
        }
        json.close('}');
    }
    if options.summary {
        json.number("Planning Time", milliseconds(figures.planning, 1), 3);
    }
    if let Some((execution, _)) = &figures.execution {
        json.key("Triggers");
        json.open('[');
        json.close(']');
        if options.summary {
            json.number("Execution Time", milliseconds(*execution, 1), 3);
        }
    }
    json.close('}');
    json.text.push_str("\n]");
    Ok(json.text)
}

struct Json {
    options: ExplainOptions,
    text: String,
    depth: usize,
    /// Whether the innermost object or list has an entry.
    begun: bool,
}

impl Json {
    /// Begins a line with the next entry of the innermost object or list.
    fn next(&mut self) {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
        self.line();
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.depth += 1;
        self.begun = false;
    }

    /// Begins an entry of a list that is an object.
    fn element(&mut self, bracket: char) {
        self.next();
        self.open(bracket);
    }

    fn close(&mut self, bracket: char) {
        self.depth -= 1;
        self.line();
        self.text.push(bracket);
        self.begun = true;
    }

    fn key(&mut self, key: &str) {
        self.next();
        self.quoted(key);
        self.text.push_str(": ");
    }

    fn string(&mut self, key: &str, value: &str) {
        self.key(key);
        self.quoted(value);
    }

    fn raw(&mut self, key: &str, value: &str) {
        self.key(key);
        self.text.push_str(value);
    }

    fn number(&mut self, key: &str, value: f64, digits: usize) {
        self.raw(key, &format!("{value:.digits$}"));
    }

    /// A text in the quotes of JSON.
    fn quoted(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.text.extend(['\\', c]),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                c if c < ' ' => self.text.push_str(&format!("\\u{:04x}", u32::from(c))),
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    /// Writes the entries of a node's object.
    fn node(&mut self, node: &Node, place: Option<&Child>) -> Result<()> {
        work::tick(SHOWING + self.depth * (8 + node.details.len()))?;
        self.string("Node Type", node.kind);
        for (key, value) in &node.facts {
            self.string(key, value);
        }
        if let Some(child) = place {
            self.string("Parent Relationship", child.role.name());
            if let Some(label) = child.role.label() {
                self.string("Subplan Name", label);
            }
        }
        self.raw("Parallel Aware", "false");
        self.raw("Async Capable", "false");
        if let Some(figures) = &node.figures {
            self.figures(figures);
        }
        for (label, detail) in &node.details {
            match detail {
                Detail::Text(text) => self.string(label, text),
                Detail::List(list) => self.list(label, list),
            }
            if let ("Filter", Some(removed)) = (*label, node.removed) {
                self.number("Rows Removed by Filter", removed, 0);
            }
        }
        if let Some(kept) = &node.kept {
            self.raw("Cache Hits", &kept.hits.to_string());
            self.raw("Cache Misses", &kept.misses.to_string());
            self.raw("Cache Evictions", &kept.evictions.to_string());
            self.raw("Cache Overflows", &kept.overflows.to_string());
            self.raw("Peak Memory Usage", &kept.bytes.div_ceil(1024).to_string());
        }
        if let Some(actual) = node.figures.and_then(|figures| figures.actual).filter(|_| self.options.buffers)
        {
            self.raw("Shared Hit Blocks", &actual.pages.hit().to_string());
            self.raw("Shared Read Blocks", &actual.pages.read.to_string());
        }
        if !node.children.is_empty() {
            self.key("Plans");
            self.open('[');
            for child in node.ordered_children() {
                self.element('{');
                self.node(&child.node, Some(child))?;
                self.close('}');
            }
            self.close(']');
        }
        Ok(())
    }

    fn list(&mut self, key: &str, list: &[String]) {
        self.key(key);
        self.text.push('[');
        for (at, text) in list.iter().enumerate() {
            if at > 0 {
                self.text.push_str(", ");
            }
            self.quoted(text);
        }
        self.text.push(']');
    }

    fn figures(&mut self, figures: &NodeFigures) {
        if self.options.costs {
            self.number("Startup Cost", figures.estimate.start * COST_UNIT, 2);
            self.number("Total Cost", figures.estimate.cost * COST_UNIT, 2);
            self.number("Plan Rows", figures.estimate.rows, 0);
            self.raw("Plan Width", &figures.width.to_string());
        }
        if let Some(actual) = &figures.actual {
            let loops = actual.loops;
            if self.options.timing {
                self.number("Actual Startup Time", milliseconds(actual.start, loops), 3);
                self.number("Actual Total Time", milliseconds(actual.total, loops), 3);
            }
            self.number("Actual Rows", actual.rows as f64 / loops.max(1) as f64, 2);
            self.raw("Actual Loops", &loops.to_string());
        }
        self.raw("Disabled", if figures.disabled { "true" } else { "false" });
    }
}
