//! The text of a script, and places in it.

use std::fmt::Display;
use std::path::Path;

use crate::files;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its file or name, for errors and results.
    pub name: String,
    pub text: String,
    /// Weight of its choice among the scripts.
    pub weight: u32,
}

impl Source {
    /// Splits `name@weight`; the weight is 1 where the option gives none.
    pub(crate) fn weighted(option: &str) -> Result<(&str, u32), String> {
        let (name, weight) = option.rsplit_once('@').unwrap_or((option, "1"));
        match weight.parse::<u32>() {
            Ok(weight) if weight <= i32::MAX as u32 => Ok((name, weight)),
            _ => {
                Err(format!("invalid weight of a script: '{option}': write NAME@NUMBER, up to {}", i32::MAX))
            }
        }
    }

    pub fn file(option: &str) -> Result<Self, String> {
        let (name, weight) = Self::weighted(option)?;
        let text =
            files::text(Path::new(name)).map_err(|error| format!("can't read the script {name}: {error}"))?;
        Ok(Self { name: name.to_owned(), text, weight })
    }
}

/// The message about a fault at byte `offset` of a script: its place, and its line with a mark.
pub(super) fn fault(source: &Source, offset: usize, message: impl Display) -> String {
    let Source { name, text, .. } = source;
    let (start, number) = line(text, offset);
    let column = text[start..].char_indices().take_while(|(at, _)| start + at < offset).count() + 1;
    let shown = text[start..].lines().next().unwrap_or_default();
    format!("{name}:{number}:{column}: {message}\n{shown}\n{:>column$} error found here", '^')
}

/// The offset of the line that holds byte `offset`, and the line's number, from 1.
pub(super) fn line(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    (start, before.iter().filter(|byte| **byte == b'\n').count() + 1)
}
