//! The comments of Rust, Python and shell sources, line by line and as paragraphs.
//!
//! Code and strings are no comments. Tables and fenced code in a comment are not prose.

/// A line of a comment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The line in the file, from 1.
    pub number: usize,
    /// The text after the comment's marker.
    pub text: String,
    /// The columns of the whole line, code before the comment included.
    pub width: usize,
}

/// Sentences that belong together.
#[derive(Debug)]
pub(crate) struct Paragraph {
    /// The line of its first word.
    pub number: usize,
    /// Its words, in one line.
    pub text: String,
}

/// The comment lines of a Rust source.
pub(crate) fn of_rust(source: &str) -> Vec<Line> {
    let widths: Vec<usize> = source.lines().map(|line| line.chars().count()).collect();
    let mut found = Vec::new();
    let mut rest = source;
    let mut number = 1;
    let mut in_word = false;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '/' if rest.starts_with("//") => {
                let end = rest.find('\n').unwrap_or(rest.len());
                let text = rest[2..end].trim_start_matches(['/', '!']);
                found.push(Line { number, text: text.trim().to_owned(), width: widths[number - 1] });
                end
            }
            '/' if rest.starts_with("/*") => {
                let end = block_comment(rest);
                for (at, line) in rest[..end].lines().enumerate() {
                    let text = line.trim().trim_start_matches(['/', '*', '!']).trim_end_matches("*/");
                    found.push(Line {
                        number: number + at,
                        text: text.trim().to_owned(),
                        width: widths[number + at - 1],
                    });
                }
                end
            }
            '"' => string(rest),
            'r' if !in_word => raw_string(rest).unwrap_or(1),
            '\'' => character(rest),
            _ => first.len_utf8(),
        };
        number += rest[..taken].matches('\n').count();
        // `br"` and `cr"` are raw strings too: a prefix does not make the `r` part of a word.
        in_word = (first.is_alphanumeric() || first == '_')
            && !matches!(first, 'b' | 'c')
            && taken == first.len_utf8();
        rest = &rest[taken..];
    }
    found
}

/// The length of a block comment; such comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The length of a raw string, if one begins here.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text[1..].bytes().take_while(|byte| *byte == b'#').count();
    let opened = text[1 + hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    Some(opened.find(&closing).map_or(text.len(), |at| 2 + hashes + at + closing.len()))
}

/// The length of a character's literal; 1 for the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            // The escaped character may be a quote itself.
            characters.next();
            characters.find(|(_, character)| *character == '\'').map_or(1, |(at, _)| at + 1)
        }
        Some(_) => characters.next().filter(|(_, character)| *character == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

/// The mark that opens and closes a docstring of Python.
const QUOTES: &str = "\"\"\"";

/// The comment lines of a script, a Makefile or a TOML file. These are lines that hold a comment
/// alone, lines of Python's docstrings, and the help of `make`.
pub(crate) fn of_script(source: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut in_docstring = false;
    for (number, line) in (1..).zip(source.lines()) {
        let trimmed = line.trim();
        let mut push = |text: &str, width| found.push(Line { number, text: text.trim().to_owned(), width });
        let width = line.chars().count();
        if in_docstring || trimmed.starts_with(QUOTES) {
            push(&trimmed.replace(QUOTES, ""), width);
            in_docstring ^= trimmed.matches(QUOTES).count() == 1;
        } else if let Some(text) = trimmed.strip_prefix('#').filter(|text| !text.starts_with('!')) {
            push(text, width);
        } else if let Some((target, help)) = line.split_once(" ## ")
            && target.contains(':')
            && !target.starts_with(char::is_whitespace)
        {
            // `make help` prints the text in a line of its own: the target's width does not count.
            push(help, 0);
            push("", 0);
        }
    }
    found
}

/// Leaves out fenced code and tables.
pub(crate) fn prose(lines: Vec<Line>) -> Vec<Line> {
    let mut fenced = false;
    let mut last = 0;
    let mut kept = Vec::new();
    for line in lines {
        // A fence ends with its comment at the latest.
        fenced &= line.number == last + 1;
        last = line.number;
        if line.text.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.text.starts_with('|') {
            kept.push(line);
        }
    }
    kept
}

/// Joins lines of prose that follow each other. An empty line or a list's mark ends a paragraph.
pub(crate) fn paragraphs(lines: &[Line]) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut last = 0;
    for line in lines {
        let begins = line.number != last + 1 || line.text.starts_with(['-', '*', '#']);
        last = if line.text.is_empty() { 0 } else { line.number };
        if line.text.is_empty() {
            continue;
        }
        match found.last_mut() {
            Some(paragraph) if !begins => {
                paragraph.text.push(' ');
                paragraph.text.push_str(&line.text);
            }
            _ => found.push(Paragraph {
                number: line.number,
                text: line.text.trim_start_matches(['-', '*', '#', ' ']).to_owned(),
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        of_rust(source).into_iter().map(|line| format!("{}: {}", line.number, line.text)).collect()
    }

    #[test]
    fn comments_are_found_beside_code_and_in_blocks() {
        let source = "//! one\nlet a = 1; // two\n/* three\n * four */\n/// five\n";
        assert_eq!(texts(source), ["1: one", "2: two", "3: three", "4: four", "5: five"]);
    }

    #[test]
    fn strings_and_characters_hide_what_looks_like_a_comment() {
        let source = "let a = \"// no\\\" // no\"; let b = r#\"// \" no\"#; let c = br\"// no\";\nlet d = '\"'; fn f<'a>() {} let e = '\\''; // yes";
        assert_eq!(texts(source), ["2: yes"]);
    }

    #[test]
    fn docstrings_and_the_help_of_make_are_comments() {
        let texts = |source| of_script(source).into_iter().map(|line| line.text).collect::<Vec<_>>();
        let python =
            "#!/usr/bin/env python3\n\"\"\"One.\n\nTwo.\"\"\"\na = 1  # no\n    \"\"\"Three.\"\"\"\n# four\n";
        assert_eq!(texts(python), ["One.", "", "Two.", "Three.", "four"]);
        assert_eq!(texts("test: setup ## One thing\n\techo a ## b\n"), ["One thing", ""]);
    }

    #[test]
    fn paragraphs_end_at_empty_lines_and_list_marks() {
        let lines = of_rust("// one\n// two\n//\n// three\n// - four\nfn f() {}\n// five");
        let found: Vec<_> = paragraphs(&lines).into_iter().map(|paragraph| paragraph.text).collect();
        assert_eq!(found, ["one two", "three", "four", "five"]);
    }
}
