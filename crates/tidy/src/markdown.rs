//! The parts of a Markdown document: prose, code, links, headings.

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::comments::Paragraph;

/// A text and the line it begins in.
pub(crate) type Placed = (usize, String);

/// A document, taken apart.
#[derive(Default)]
pub(crate) struct Parts {
    /// The prose outside tables, code spans replaced by `x`.
    pub paragraphs: Vec<Paragraph>,
    /// Code spans and the lines of fenced code.
    pub code: Vec<Placed>,
    /// The targets of links and images.
    pub links: Vec<Placed>,
    /// The names a link may give after `#`.
    pub anchors: Vec<String>,
    /// The lines of tables, code and raw HTML, which are no prose.
    pub excepted: Vec<Range<usize>>,
}

/// Takes a document apart.
pub(crate) fn parts(text: &str) -> Parts {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line = |at: usize| starts.partition_point(|start| *start <= at);
    let mut parts = Parts::default();
    let mut heading = None;
    let mut in_table = false;
    let mut in_block = false;
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match &event {
            Event::Start(Tag::Table(_) | Tag::CodeBlock(_) | Tag::HtmlBlock) => {
                parts.excepted.push(line(range.start)..line(range.end.max(1) - 1) + 1);
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                parts.links.push((line(range.start), dest_url.to_string()));
            }
            _ => {}
        }
        match event {
            Event::Start(Tag::Table(_)) => in_table = true,
            Event::End(TagEnd::Table) => in_table = false,
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Start(Tag::Heading { .. }) => {
                heading = Some(String::new());
                parts.paragraphs.push(Paragraph { number: line(range.start), text: String::new() });
            }
            Event::End(TagEnd::Heading(_)) => parts.anchors.extend(heading.take().map(|text| slug(&text))),
            Event::Start(Tag::Paragraph | Tag::Item) => {
                parts.paragraphs.push(Paragraph { number: line(range.start), text: String::new() });
            }
            Event::Text(words) if in_block => {
                let first = line(range.start);
                parts.code.extend(words.lines().enumerate().map(|(at, code)| (first + at, code.to_owned())));
            }
            Event::Text(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
                if !in_table {
                    add(&mut parts, &words);
                }
            }
            Event::Code(code) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&code);
                }
                parts.code.push((line(range.start), code.to_string()));
                if !in_table {
                    add(&mut parts, "x");
                }
            }
            Event::SoftBreak | Event::HardBreak if !in_table => add(&mut parts, " "),
            _ => {}
        }
    }
    parts
}

fn add(parts: &mut Parts, words: &str) {
    if let Some(paragraph) = parts.paragraphs.last_mut() {
        paragraph.text.push_str(words);
    }
}

/// The anchor that renderers give a heading: lower case, hyphens for spaces, no other signs.
fn slug(heading: &str) -> String {
    let kept = |sign: char| match sign {
        ' ' => Some('-'),
        '-' | '_' => Some(sign),
        sign if sign.is_alphanumeric() => Some(sign),
        _ => None,
    };
    heading.to_lowercase().chars().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# A `b` c, d\n\nWords with `code`\nand [a link](x.md#y).\n\n```\nmake it\n```\n\n| t |\n|---|\n| `u` |\n";

    #[test]
    fn a_document_falls_into_its_parts() {
        let parts = parts(DOCUMENT);
        assert_eq!(parts.anchors, ["a-b-c-d"]);
        assert_eq!(parts.links, [(4, "x.md#y".to_owned())]);
        assert_eq!(
            parts.code,
            [(1, "b".to_owned()), (3, "code".to_owned()), (7, "make it".to_owned()), (12, "u".to_owned())]
        );
        assert_eq!(parts.excepted, [6..9, 10..13]);
        assert_eq!(parts.paragraphs[1].text, "Words with x and a link.");
    }
}
