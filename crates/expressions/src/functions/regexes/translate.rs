//! PostgreSQL's regular expressions, "advanced" ones and POSIX's two kinds, in the syntax of the
//! library that runs them.
//!
//! The translator writes out the constructs that look alike in both syntaxes but differ in meaning:
//!
//! - classes of characters: `\d` is ASCII, `[[:alpha:]]` is not;
//! - `\b` (a backspace), `\B` (a backslash) and `\<` (a character);
//! - `{` without a number.
//!
//! A pattern that PostgreSQL refuses fails with 2201B, even if the library accepts it. A pattern
//! that the library cannot run fails with 0A000.

use std::iter::Peekable;
use std::str::Chars;

use values::error::{SqlError, SqlState};

/// The largest number of a quantifier.
const MOST: u32 = 255;

/// A translated pattern.
pub(super) struct Translated {
    /// The pattern in the library's syntax, flags included.
    pub pattern: String,
    /// The pattern prefers the shortest of the matches that begin first, not the longest.
    pub shortest: bool,
}

/// The kinds of regular expressions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Syntax {
    #[default]
    Advanced,
    /// POSIX's extended ones: a backslash makes the next character ordinary, and nothing prefers
    /// the shortest match.
    Extended,
    /// POSIX's basic ones: see [`Reader::basic`].
    Basic,
}

/// The flags that a pattern is read with.
#[derive(Clone, Copy, Default)]
struct Mode {
    syntax: Syntax,
    insensitive: bool,
    /// `.` and brackets with `^` do not match a newline.
    lines: bool,
    /// `^` and `$` match at every line.
    anchors: bool,
    expanded: bool,
    literal: bool,
}

impl Mode {
    /// Applies a flag of a function's argument, or one at the pattern's beginning.
    fn take(&mut self, flag: char, embedded: bool) -> Result<(), SqlError> {
        match flag {
            'i' => self.insensitive = true,
            'c' => self.insensitive = false,
            'n' | 'm' => (self.lines, self.anchors) = (true, true),
            's' => (self.lines, self.anchors) = (false, false),
            'p' => (self.lines, self.anchors) = (true, false),
            'w' => (self.lines, self.anchors) = (false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'e' if embedded => (self.syntax, self.literal) = (Syntax::Extended, false),
            // PostgreSQL takes the argument's flag `e` for basic expressions too, contrary to its
            // documentation.
            'e' | 'b' => (self.syntax, self.literal) = (Syntax::Basic, false),
            other => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!("invalid regular expression option: \"{other}\""),
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn invalid(what: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {what}"))
}

fn back_references() -> SqlError {
    SqlError::unsupported("back references in a regular expression")
}

/// Translates a pattern with its flags.
pub(super) fn translate(pattern: &str, flags: &str) -> Result<Translated, SqlError> {
    let mut mode = Mode::default();
    for flag in flags.chars() {
        mode.take(flag, false)?;
    }
    if mode.literal && (mode.expanded || mode.lines || mode.anchors) {
        return Err(invalid("invalid argument to regex function"));
    }
    let mut rest = pattern;
    if let Some(directed) = pattern.strip_prefix("***").filter(|_| !mode.literal) {
        rest = match directed.chars().next() {
            Some('=') => {
                mode.literal = true;
                &directed[1..]
            }
            Some(':') => {
                mode.syntax = Syntax::Advanced;
                &directed[1..]
            }
            _ => return Err(invalid("quantifier operand invalid")),
        };
    }
    if let Some((options, after)) = rest.strip_prefix("(?").and_then(|rest| rest.split_once(')'))
        && !mode.literal
        && mode.syntax == Syntax::Advanced
        && !options.is_empty()
        && options.chars().all(|c| c.is_ascii_alphabetic())
    {
        for flag in options.chars() {
            mode.take(flag, true).map_err(|_| invalid("invalid embedded option"))?;
        }
        rest = after;
    }
    let (mut out, mut shortest) = (String::with_capacity(rest.len() + 16), false);
    let flags = [(mode.insensitive, 'i'), (!mode.lines, 's'), (mode.anchors, 'm')];
    if flags.iter().any(|(on, _)| *on) {
        out.push_str("(?");
        out.extend(flags.iter().filter(|(on, _)| *on).map(|(_, flag)| *flag));
        out.push(')');
    }
    if mode.literal {
        out.push_str(&regex_syntax::escape(rest));
    } else {
        let mut reader = Reader { rest: rest.chars().peekable(), mode, out };
        let prefers = if mode.syntax == Syntax::Basic { reader.basic(0)? } else { reader.branches(0)? };
        shortest = prefers == Some(Length::Shortest);
        out = reader.out;
    }
    Ok(Translated { pattern: out, shortest })
}

/// The length of match that a part of a pattern prefers, if it can match several lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Longest,
    Shortest,
}

struct Reader<'p> {
    rest: Peekable<Chars<'p>>,
    mode: Mode,
    out: String,
}

impl Reader<'_> {
    /// Reads branches up to the closing parenthesis, or the end where `depth` is 0. Several
    /// branches prefer the longest match; one branch has the preference of its first part with a
    /// preference.
    fn branches(&mut self, depth: usize) -> Result<Option<Length>, SqlError> {
        let mut prefers = None;
        let mut several = false;
        while let Some(c) = self.rest.next() {
            match c {
                ')' if depth > 0 => {
                    self.out.push(')');
                    return Ok(if several { Some(Length::Longest) } else { prefers });
                }
                ')' if self.is_advanced() => return Err(invalid("parentheses () not balanced")),
                '|' => {
                    self.out.push('|');
                    several = true;
                }
                '^' | '$' => self.out.push(c),
                // The quantifier of an atom was read with the atom.
                '*' | '+' | '?' => return Err(invalid("quantifier operand invalid")),
                '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                    return Err(invalid("quantifier operand invalid"));
                }
                c if self.mode.expanded && c.is_whitespace() => {}
                '#' if self.mode.expanded => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '(' if self.is_advanced() && self.comment()? => {}
                _ => {
                    let (own, quantifiable) = self.atom(c, depth)?;
                    let own = if quantifiable { self.quantifier(own)? } else { own };
                    prefers = prefers.or(own);
                }
            }
        }
        if depth > 0 {
            return Err(invalid("parentheses () not balanced"));
        }
        Ok(if several { Some(Length::Longest) } else { prefers })
    }

    /// Skips `(?#...)`; its opening parenthesis was read.
    fn comment(&mut self) -> Result<bool, SqlError> {
        let mut ahead = self.rest.clone();
        if (ahead.next(), ahead.next()) != (Some('?'), Some('#')) {
            return Ok(false);
        }
        match self.rest.by_ref().find(|c| *c == ')') {
            Some(_) => Ok(true),
            None => Err(invalid("parentheses () not balanced")),
        }
    }

    /// Reads one atom or constraint. Returns its preference and whether it may be quantified.
    fn atom(&mut self, first: char, depth: usize) -> Result<(Option<Length>, bool), SqlError> {
        match first {
            '(' => {
                if depth >= 200 {
                    return Err(invalid("regular expression is too complex"));
                }
                self.out.push('(');
                if self.is_advanced() && self.rest.next_if_eq(&'?').is_some() {
                    match self.rest.next() {
                        Some(':') => self.out.push_str("?:"),
                        Some('=' | '!' | '<') => {
                            return Err(SqlError::unsupported(
                                "lookahead and lookbehind in a regular expression",
                            ));
                        }
                        _ => return Err(invalid("quantifier operand invalid")),
                    }
                }
                return Ok((self.branches(depth + 1)?, true));
            }
            '[' => return Ok((None, self.bracket()?)),
            '.' => self.out.push('.'),
            '\\' if self.is_advanced() => return Ok((None, self.escape(false)?)),
            '\\' => {
                let escaped = self.escaped()?;
                self.literal(escaped);
            }
            other => self.literal(other),
        }
        Ok((None, true))
    }

    /// Reads a basic expression up to the closing parenthesis, or the end where `depth` is 0. Its
    /// parentheses and braces follow backslashes. It has no alternatives, no `+` and no `?`. `*`,
    /// `^` and `$` are ordinary characters where they can be nothing else.
    fn basic(&mut self, depth: usize) -> Result<Option<Length>, SqlError> {
        let (mut prefers, mut first, mut anchored) = (None, true, false);
        loop {
            self.skip_space();
            let Some(c) = self.rest.next() else { break };
            let (starts, behind_anchor) =
                (std::mem::replace(&mut first, false), std::mem::replace(&mut anchored, false));
            let (mut own, mut quantifiable) = (None, true);
            match c {
                '^' if starts => {
                    self.out.push('^');
                    anchored = true;
                    continue;
                }
                '$' if self.ends_basic() => {
                    self.out.push('$');
                    continue;
                }
                '*' if !starts && !behind_anchor => return Err(invalid("quantifier operand invalid")),
                '.' => self.out.push('.'),
                '[' => quantifiable = self.bracket()?,
                '\\' => match self.escaped()? {
                    '(' if depth >= 200 => return Err(invalid("regular expression is too complex")),
                    '(' => {
                        self.out.push('(');
                        own = self.basic(depth + 1)?;
                    }
                    ')' if depth > 0 => {
                        self.out.push(')');
                        return Ok(prefers);
                    }
                    ')' => return Err(invalid("parentheses () not balanced")),
                    '{' => return Err(invalid("quantifier operand invalid")),
                    boundary @ ('<' | '>') => {
                        self.out.push_str(if boundary == '<' { "\\b{start}" } else { "\\b{end}" });
                        quantifiable = false;
                    }
                    '1'..='9' => return Err(back_references()),
                    other => self.literal(other),
                },
                other => self.literal(other),
            }
            let own = if quantifiable { self.quantifier(own)? } else { own };
            prefers = prefers.or(own);
        }
        if depth > 0 { Err(invalid("parentheses () not balanced")) } else { Ok(prefers) }
    }

    /// Whether a basic expression or a group of it ends here.
    fn ends_basic(&mut self) -> bool {
        self.skip_space();
        let mut ahead = self.rest.clone();
        matches!((ahead.next(), ahead.next()), (None, _) | (Some('\\'), Some(')')))
    }

    fn is_advanced(&self) -> bool {
        self.mode.syntax == Syntax::Advanced
    }

    /// Skips white space and comments of the expanded syntax.
    fn skip_space(&mut self) {
        while self.mode.expanded
            && let Some(c) = self.rest.next_if(|c| c.is_whitespace() || *c == '#')
        {
            while c == '#' && self.rest.next_if(|c| *c != '\n').is_some() {}
        }
    }

    /// The character after a backslash.
    fn escaped(&mut self) -> Result<char, SqlError> {
        self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    fn literal(&mut self, c: char) {
        self.out.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
    }

    /// Reads the quantifier of an atom, if there is one. Returns the preference of the two
    /// together.
    fn quantifier(&mut self, own: Option<Length>) -> Result<Option<Length>, SqlError> {
        self.skip_space();
        let mut ahead = self.rest.clone();
        let fixed = match (self.mode.syntax, ahead.next(), ahead.peek()) {
            (_, Some('*'), _) | (Syntax::Advanced | Syntax::Extended, Some('+' | '?'), _) => {
                self.out.extend(self.rest.next());
                false
            }
            (Syntax::Advanced | Syntax::Extended, Some('{'), Some('0'..='9')) => {
                self.rest = ahead;
                self.bounds()?
            }
            (Syntax::Basic, Some('\\'), Some('{')) => {
                ahead.next();
                self.rest = ahead;
                self.bounds()?
            }
            _ => return Ok(own),
        };
        let shortest = self.is_advanced() && self.rest.next_if_eq(&'?').is_some();
        if shortest {
            self.out.push('?');
        }
        if self.mode.syntax != Syntax::Basic && matches!(self.rest.peek(), Some('*' | '+' | '?')) {
            return Err(invalid("quantifier operand invalid"));
        }
        Ok(match (fixed, shortest) {
            (true, _) => own,
            (false, true) => Some(Length::Shortest),
            (false, false) => Some(Length::Longest),
        })
    }

    /// Reads `m}`, `m,}` or `m,n}`; in a basic expression a backslash precedes the brace, and `m`
    /// may be missing. Returns whether the number is fixed.
    fn bounds(&mut self) -> Result<bool, SqlError> {
        let wrong = || invalid("invalid repetition count(s)");
        let is_digit = |c: Option<&char>| c.is_some_and(char::is_ascii_digit);
        let least = if is_digit(self.rest.peek()) { self.number().ok_or_else(wrong)? } else { 0 };
        let (mut most, mut fixed) = (Some(least), true);
        if self.rest.next_if_eq(&',').is_some() {
            fixed = false;
            most = if is_digit(self.rest.peek()) { Some(self.number().ok_or_else(wrong)?) } else { None };
        }
        let mut end = self.rest.next().ok_or_else(|| invalid("braces {} not balanced"))?;
        if self.mode.syntax == Syntax::Basic {
            end = if end == '\\' { self.rest.next().ok_or_else(wrong)? } else { return Err(wrong()) };
        }
        if end != '}' || most.is_some_and(|most| most < least) {
            return Err(wrong());
        }
        self.out.push_str(&match most {
            None => format!("{{{least},}}"),
            Some(most) => format!("{{{least},{most}}}"),
        });
        Ok(fixed)
    }

    fn number(&mut self) -> Option<u32> {
        let mut number: Option<u32> = None;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            self.rest.next();
            number = Some(number.unwrap_or(0) * 10 + digit).filter(|number| *number <= MOST);
            number?;
        }
        number
    }

    /// Reads the rest of an escape, within brackets or not. Returns whether it may be quantified.
    fn escape(&mut self, in_bracket: bool) -> Result<bool, SqlError> {
        let c = self.escaped()?;
        let constraint = match c {
            'A' => Some("\\A"),
            'Z' => Some("\\z"),
            'm' => Some("\\b{start}"),
            'M' => Some("\\b{end}"),
            'y' => Some("\\b"),
            'Y' => Some("\\B"),
            _ => None,
        };
        if let Some(constraint) = constraint.filter(|_| !in_bracket) {
            self.out.push_str(constraint);
            return Ok(false);
        }
        match c {
            'd' => self.out.push_str(if in_bracket { "0-9" } else { "[0-9]" }),
            'D' => self.out.push_str("[^0-9]"),
            's' | 'S' | 'w' | 'W' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'a' => self.literal('\u{7}'),
            'b' => self.literal('\u{8}'),
            'B' => self.literal('\\'),
            'e' => self.literal('\u{1b}'),
            'f' => self.literal('\u{c}'),
            'n' => self.literal('\n'),
            'r' => self.literal('\r'),
            't' => self.literal('\t'),
            'v' => self.literal('\u{b}'),
            'c' => {
                let letter = self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                self.code(u32::from(letter) & 0x1f)?;
            }
            'u' => self.hexadecimal(4)?,
            'U' => self.hexadecimal(8)?,
            'x' => {
                let mut code = 0_u32;
                let mut digits = 0;
                while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(16)) {
                    self.rest.next();
                    digits += 1;
                    code = code.checked_mul(16).map_or(u32::MAX, |code| code | digit);
                }
                if digits == 0 {
                    return Err(invalid("invalid escape \\ sequence"));
                }
                self.code(code)?;
            }
            '1'..='9' if !in_bracket => {
                return Err(back_references());
            }
            c if c.is_ascii_alphanumeric() => return Err(invalid("invalid escape \\ sequence")),
            other => self.literal(other),
        }
        Ok(true)
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<(), SqlError> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = self.rest.next().and_then(|c| c.to_digit(16));
            code = code << 4 | digit.ok_or_else(|| invalid("invalid escape \\ sequence"))?;
        }
        self.code(code)
    }

    fn code(&mut self, code: u32) -> Result<(), SqlError> {
        let c = char::from_u32(code).ok_or_else(|| invalid("invalid escape \\ sequence"))?;
        self.literal(c);
        Ok(())
    }

    /// Reads the rest of a bracket expression. Returns whether it may be quantified.
    fn bracket(&mut self) -> Result<bool, SqlError> {
        for (word, boundary) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
            let mut ahead = self.rest.clone();
            if word.chars().all(|c| ahead.next() == Some(c)) {
                self.rest = ahead;
                self.out.push_str(boundary);
                return Ok(false);
            }
        }
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
            if self.mode.lines {
                self.out.push_str("\\n");
            }
        }
        let unbalanced = || invalid("brackets [] not balanced");
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(unbalanced)?;
            match c {
                ']' if !first => break,
                '\\' if self.is_advanced() => {
                    self.escape(true)?;
                }
                '[' if self.rest.next_if_eq(&':').is_some() => self.class()?,
                '[' if matches!(self.rest.peek(), Some('.' | '=')) => {
                    return Err(SqlError::unsupported("collating elements in a regular expression"));
                }
                // Between two characters, not at an end, it makes a range.
                '-' if !first && !matches!(self.rest.peek(), Some(']') | None) => self.out.push('-'),
                other => self.literal(other),
            }
            first = false;
        }
        self.out.push(']');
        Ok(true)
    }

    /// Reads a class's name after `[:`.
    fn class(&mut self) -> Result<(), SqlError> {
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|c| *c != ':') {
            name.push(c);
        }
        if (self.rest.next(), self.rest.next()) != (Some(':'), Some(']')) {
            return Err(invalid("brackets [] not balanced"));
        }
        self.out.push_str(match name.as_str() {
            "alpha" => "\\p{Alphabetic}",
            "alnum" => "\\p{Alphabetic}0-9",
            "word" => "\\w",
            "upper" => "\\p{Uppercase}",
            "lower" => "\\p{Lowercase}",
            "digit" => "0-9",
            "xdigit" => "0-9A-Fa-f",
            "space" => "\\s",
            "blank" => " \\t",
            "punct" => "\\p{P}\\p{S}",
            "cntrl" => "\\p{Cc}",
            "ascii" => "\\x00-\\x7F",
            "print" => "\\P{C}",
            "graph" => "[\\P{C}--\\s]",
            _ => return Err(invalid("invalid character class")),
        });
        Ok(())
    }
}
