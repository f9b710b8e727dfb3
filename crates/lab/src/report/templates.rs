//! The outputs' templates, and the escaping of a report's texts in them.
//!
//! What must hold: for any report, a page is well-formed and Markdown keeps its shape. Texts are
//! escaped. A character that a page may not hold becomes U+FFFD; one that Markdown may not hold
//! becomes a blank.

use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Value};
use serde_json::json;

use super::sheets;
use crate::figures;
use crate::record::Report;

/// Name and text of each template.
const TEMPLATES: [(&str, &str); 5] = [
    ("page.html", include_str!("templates/page.html")),
    ("parts.html", include_str!("templates/parts.html")),
    ("picture.svg", include_str!("templates/picture.svg")),
    ("run.md", include_str!("templates/run.md")),
    ("runs.md", include_str!("templates/runs.md")),
];

/// Renders the template of this name with these values.
pub(super) fn render(name: &str, values: serde_json::Value) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name.ends_with(".md") {
        true => AutoEscape::Custom("md".into()),
        false => AutoEscape::Html,
    });
    environment.set_formatter(|out, state, value| {
        match value.kind() {
            ValueKind::Undefined | ValueKind::None => Ok(()),
            ValueKind::String if value.is_safe() => write!(out, "{value}"),
            ValueKind::String if matches!(state.auto_escape(), AutoEscape::Html) => {
                out.write_str(&html(&value.to_string()))
            }
            ValueKind::String => out.write_str(&markdown(&value.to_string())),
            _ => write!(out, "{value}"),
        }
        .map_err(Into::into)
    });
    environment.add_filter("plain", |text: &str| Value::from_safe_string(figures::plain(text)));
    environment.add_filter("wrapped", |text: &str| Value::from_safe_string(wrapped(text)));
    environment.add_global("style", include_str!("templates/style.css"));
    for (name, text) in TEMPLATES {
        environment.add_template(name, text).expect("a template that is well-formed");
    }
    let template = environment.get_template(name).expect("a template of this name");
    let mut text = template.render(Serde(values)).expect("a template has what it asks for");
    text.push('\n');
    text
}

/// Renders a run's template with these workloads and the values that all templates share.
pub(super) fn render_run(
    name: &str,
    report: &Report,
    title: &str,
    workloads: Vec<serde_json::Value>,
) -> String {
    let values = json!({
        "title": title,
        "began": report.began,
        "command": report.command.join(" "),
        "verdict": report.verdict,
        "findings": report.findings,
        "missing": sheets::missing(report),
        "workloads": workloads,
        "arms": report.arms,
        "load": report.load,
        "machine": report.machine.facts,
        "noise": sheets::noise(report),
    });
    render(name, values)
}

fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in text.chars() {
        match one {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' => escaped.push(one),
            one if one.is_control() || (one as u32 & 0xfffe) == 0xfffe => escaped.push('\u{fffd}'),
            '\u{fdd0}'..='\u{fdef}' => escaped.push('\u{fffd}'),
            one => escaped.push(one),
        }
    }
    escaped
}

/// Puts a text on one line and escapes the characters that Markdown or HTML would interpret.
fn markdown(text: &str) -> String {
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

/// Wraps Markdown at 100 columns; it indents the lines of a list's item after its first.
fn wrapped(text: &str) -> String {
    let indent = if text.starts_with("- ") { "  " } else { "" };
    textwrap::fill(&markdown(text), textwrap::Options::new(100).subsequent_indent(indent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_in_pages_and_markdown() {
        assert_eq!(
            html("a\"b<c 1 < 2 & \u{0}\u{7}\u{ffff}"),
            "a&quot;b&lt;c 1 &lt; 2 &amp; \u{fffd}\u{fffd}\u{fffd}"
        );
        assert_eq!(markdown("a|b_c\n<d>"), "a\\|b\\_c &lt;d>");
    }
}
