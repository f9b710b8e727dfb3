//! The outputs' templates, and the escaping of a report's texts in them.
//!
//! What must hold: for any report, a page is well-formed and Markdown keeps its shape. Texts are
//! escaped. A control character becomes a blank, another one that a page may not hold U+FFFD.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value, escape_formatter};

use crate::figures;

const TEMPLATES: [(&str, &str); 7] = [
    ("page.html", include_str!("templates/page.html")),
    ("parts.html", include_str!("templates/parts.html")),
    ("picture.svg", include_str!("templates/picture.svg")),
    ("run.md", include_str!("templates/run.md")),
    ("runs.md", include_str!("templates/runs.md")),
    ("sheets.html", include_str!("templates/sheets.html")),
    ("sheets.md", include_str!("templates/sheets.md")),
];

/// Renders the template of this name with these values.
pub(super) fn render(name: &str, mut values: serde_json::Value) -> String {
    clean(&mut values);
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name.ends_with(".md") {
        true => AutoEscape::Custom("md".into()),
        false => AutoEscape::Html,
    });
    environment.set_formatter(|out, state, value| match (value.as_str(), state.auto_escape()) {
        _ if value.is_none() => Ok(()),
        (Some(text), AutoEscape::Custom(_)) if !value.is_safe() => Ok(out.write_str(&markdown(text))?),
        (_, AutoEscape::Custom(_)) => Ok(write!(out, "{value}")?),
        _ => escape_formatter(out, state, value),
    });
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

/// Replaces the characters that a page may not hold, and those that move a cursor.
fn clean(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            let is_character =
                |one: char| (one as u32 & 0xfffe) != 0xfffe && !('\u{fdd0}'..='\u{fdef}').contains(&one);
            *text = figures::plain(text).replace(|one| !is_character(one), "\u{fffd}");
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(clean),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(clean),
        _ => {}
    }
}

/// Escapes the characters that Markdown or HTML would interpret.
fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for one in text.chars() {
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
    use crate::report::samples;

    #[test]
    fn texts_are_escaped_in_pages_and_markdown() {
        let mut report = samples::nothing();
        report.verdict = vec!["a\"b<c 1 < 2 & \u{0}\u{7}\u{ffff}".into()];
        let page = crate::report::html(&report);
        assert!(page.contains(">a&quot;b&lt;c 1 &lt; 2 &amp;   \u{fffd}</li>"), "{page}");
        assert_eq!(markdown("a|b_c <d>"), "a\\|b\\_c &lt;d>");
    }
}
