//! HTML and SVG as text that is always well-formed: elements close where their scope ends, texts and attributes are
//! escaped, and characters that no document may hold become U+FFFD.

use std::fmt::{Display, Write as _};

/// A piece of a document.
#[derive(Debug, Default)]
pub(super) struct Markup {
    text: String,
}

impl Markup {
    /// What was written.
    pub fn into_text(self) -> String {
        self.text
    }

    /// Text between elements.
    pub fn text(&mut self, text: impl Display) {
        self.escape(&text.to_string());
    }

    /// An element with attributes and what `inside` writes into it.
    pub fn element(
        &mut self,
        name: &str,
        attributes: &[(&str, &dyn Display)],
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes, ">");
        inside(self);
        self.text.push_str("</");
        self.text.push_str(name);
        self.text.push('>');
    }

    /// An element with attributes and a text.
    pub fn leaf(&mut self, name: &str, attributes: &[(&str, &dyn Display)], text: impl Display) {
        self.element(name, attributes, |inside| inside.text(text));
    }

    /// An element of SVG, or one of HTML that has no end, without anything inside.
    pub fn empty(&mut self, name: &str, attributes: &[(&str, &dyn Display)]) {
        self.open(name, attributes, "/>");
    }

    /// A constant piece of a document: the style sheet, the first line.
    pub fn verbatim(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    fn open(&mut self, name: &str, attributes: &[(&str, &dyn Display)], end: &str) {
        self.text.push('<');
        self.text.push_str(name);
        for (name, value) in attributes {
            write!(self.text, " {name}=\"").expect("a String takes all");
            self.escape(&value.to_string());
            self.text.push('"');
        }
        self.text.push_str(end);
    }

    fn escape(&mut self, text: &str) {
        for one in text.chars() {
            match one {
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '&' => self.text.push_str("&amp;"),
                '"' => self.text.push_str("&quot;"),
                '\t' | '\n' => self.text.push(one),
                one if one.is_control() || (one as u32 & 0xfffe) == 0xfffe => self.text.push('\u{fffd}'),
                '\u{fdd0}'..='\u{fdef}' => self.text.push('\u{fffd}'),
                one => self.text.push(one),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_escaped_and_elements_closed() {
        let mut page = Markup::default();
        page.element("p", &[("title", &"a\"b<c")], |inside| {
            inside.text("1 < 2 & \u{0}\u{7}\u{ffff}");
            inside.empty("br", &[]);
        });
        let text = page.into_text();
        assert_eq!(text, "<p title=\"a&quot;b&lt;c\">1 &lt; 2 &amp; \u{fffd}\u{fffd}\u{fffd}<br/></p>");
    }
}
