//! Texts of the server, made safe for a terminal.
//!
//! A statement's text may hold anything, escape sequences of the terminal too. Control characters
//! and those that change the direction of text become `?`.

/// A text on one line: each stretch of white space is one space.
pub(crate) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().map(shown).collect()
}

/// A text that keeps its line breaks. A tab is four spaces.
pub(crate) fn lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\t', "    ");
    text.chars().map(|sign| if sign == '\n' { sign } else { shown(sign) }).collect()
}

fn shown(sign: char) -> char {
    let is_hidden = matches!(
        sign,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    if sign.is_control() || is_hidden { '?' } else { sign }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_stays() {
        let hostile = "select\t1,\r\n '\u{1b}]0;title\u{7}\u{9b}2J\u{202e}' -- 漢字\u{0}";
        assert_eq!(line(hostile), "select 1, '?]0;title??2J?' -- 漢字?");
        assert_eq!(lines(hostile), "select    1,\n '?]0;title??2J?' -- 漢字?");
        let all: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        assert!(!line(&all).chars().any(char::is_control));
        assert!(!lines(&all).chars().any(|sign| sign.is_control() && sign != '\n'));
    }
}
