//! Sentences of at most 25 words, in comments and documents.
//!
//! A sentence ends at a full stop, question mark or exclamation mark before a space, and with its
//! paragraph. A word is what stands between spaces and holds a letter or a digit.

use crate::comments::{self, Paragraph};
use crate::markdown;
use crate::words;
use crate::workspace::Workspace;
use crate::{Finding, at};

/// The most words a sentence may have.
const WORDS: usize = 25;

/// Finds sentences that are too long.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in workspace.rust() {
        let lines = comments::prose(comments::of_rust(&source.text));
        too_long(&source.path, &comments::paragraphs(&lines), &mut found);
    }
    for script in &workspace.scripts {
        too_long(&script.path, &comments::paragraphs(&comments::of_script(&script.text)), &mut found);
    }
    for document in &workspace.documents {
        too_long(&document.path, &markdown::parts(&document.text).paragraphs, &mut found);
    }
    found
}

fn too_long(path: &str, paragraphs: &[Paragraph], found: &mut Vec<Finding>) {
    for paragraph in paragraphs {
        for sentence in words::sentences(&paragraph.text) {
            let words =
                sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
            if words > WORDS {
                found.push(at(path, paragraph.number, &format!("{words} words: {sentence}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        let mut found = Vec::new();
        too_long("f", &[Paragraph { number: 1, text: text.to_owned() }], &mut found);
        found.len()
    }

    #[test]
    fn the_26th_word_of_a_sentence_is_one_too_many() {
        let words = |count| vec!["word"; count].join(" ");
        assert_eq!(found(&words(25)), 0);
        assert_eq!(found(&words(26)), 1);
        assert_eq!(found(&format!("{}. {}.", words(25), words(25))), 0);
    }

    #[test]
    fn signs_between_spaces_are_no_words() {
        assert_eq!(found(&format!("{} + - =", vec!["word"; 25].join(" "))), 0);
    }
}
