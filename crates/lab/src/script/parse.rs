//! Reads an expression by operator precedence. pgbench's precedences are, from the loosest: OR,
//! AND, NOT, comparisons (not chained), `+ -`, `* / %`, the prefixes `+ -`.
//!
//! An expression ends at the line's end; a backslash before that end continues it in the next line.
//! An error's place is the last character of its word, as in pgbench.

use super::expression::{Expression, FUNCTIONS, Function};
use super::scan::blanks;
use super::value::Value;
use super::variables::{Names, begins_name, continues_name};

#[derive(Debug)]
pub(super) struct Wrong {
    pub offset: usize,
    pub message: String,
}

/// More operators and parentheses in one expression than any script needs. Each may lie below the
/// next one in the tree, which is as deep then, and recursion walks it.
const LENGTH_MAX: usize = 500;

/// Precedences.
const ANY: u8 = 1;
const COMPARISON: u8 = 4;

/// The operators between two operands, and their precedences.
const OPERATORS: [(&str, u8, Function); 14] = [
    ("or", ANY, Function::Or),
    ("and", 2, Function::And),
    ("=", COMPARISON, Function::Equal),
    ("<>", COMPARISON, Function::NotEqual),
    ("!=", COMPARISON, Function::NotEqual),
    ("<", COMPARISON, Function::Less),
    ("<=", COMPARISON, Function::LessOrEqual),
    (">", COMPARISON, Function::Greater),
    (">=", COMPARISON, Function::GreaterOrEqual),
    ("+", 5, Function::Add),
    ("-", 5, Function::Subtract),
    ("*", 6, Function::Multiply),
    ("/", 6, Function::Divide),
    ("%", 6, Function::Modulo),
];

/// Reads the expression that begins at `at`; returns it with the offset after its line.
pub(super) fn expression(text: &str, at: usize, names: &mut Names) -> Result<(Expression, usize), Wrong> {
    let mut parser = Parser { text, at, token: Token::End, names, length: 0 };
    parser.advance()?;
    let expression = parser.binary(ANY)?;
    match parser.token {
        Token::End => Ok((expression, parser.at)),
        _ => Err(parser.unexpected()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Number(&'a str),
    Variable(&'a str),
    /// A name, a keyword or an operator.
    Word(&'a str),
    End,
}

struct Parser<'a, 'n> {
    text: &'a str,
    /// The offset behind the token.
    at: usize,
    token: Token<'a>,
    names: &'n mut Names,
    /// Number of operators and parentheses read so far.
    length: usize,
}

impl<'a> Parser<'a, '_> {
    fn wrong(&self, message: String) -> Wrong {
        Wrong { offset: self.at.saturating_sub(1), message }
    }

    fn unexpected(&self) -> Wrong {
        self.wrong("syntax error".into())
    }

    fn advance(&mut self) -> Result<(), Wrong> {
        self.at += blanks(&self.text[self.at..]);
        let rest = &self.text[self.at..];
        let run = |from: usize, fits: fn(u8) -> bool| {
            from + rest.bytes().skip(from).take_while(|byte| fits(*byte)).count()
        };
        let (length, token): (usize, fn(&'a str) -> Token<'a>) = match rest.as_bytes() {
            [] => (0, |_| Token::End),
            [b'\n', ..] => (1, |_| Token::End),
            [b':', next, ..] if continues_name(*next) => {
                (run(1, continues_name), |text| Token::Variable(&text[1..]))
            }
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => (number(rest), Token::Number),
            [first, ..] if begins_name(*first) => (run(0, continues_name), Token::Word),
            [b'<', b'>' | b'=', ..] | [b'!' | b'>', b'=', ..] => (2, Token::Word),
            [b'+' | b'-' | b'*' | b'/' | b'%' | b'=' | b'<' | b'>' | b'(' | b')' | b',', ..] => {
                (1, Token::Word)
            }
            _ => {
                self.at += 1;
                return Err(self.wrong(format!("unexpected character ({})", &rest[..1])));
            }
        };
        self.at += length;
        self.token = token(&rest[..length]);
        Ok(())
    }

    fn is(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(text) if text.eq_ignore_ascii_case(word))
    }

    /// Skips this word.
    fn expect(&mut self, word: &str) -> Result<(), Wrong> {
        if self.is(word) { self.advance() } else { Err(self.unexpected()) }
    }

    fn count(&mut self) -> Result<(), Wrong> {
        self.length += 1;
        if self.length > LENGTH_MAX { Err(self.wrong("expression is too long".into())) } else { Ok(()) }
    }

    /// Reads an expression of operators that bind at least this tightly.
    fn binary(&mut self, least: u8) -> Result<Expression, Wrong> {
        let (mut left, mut most) = (self.operand()?, u8::MAX);
        let operator = |this: &Self, most: u8| {
            OPERATORS.into_iter().find(|(word, level, _)| (least..=most).contains(level) && this.is(word))
        };
        while let Some((_, level, function)) = operator(self, most) {
            self.count()?;
            self.advance()?;
            left = Expression::Call(function, Box::new([left, self.binary(level + 1)?]));
            if level == COMPARISON {
                most = level - 1;
            }
        }
        Ok(left)
    }

    /// Reads an operand with its prefixes.
    fn operand(&mut self) -> Result<Expression, Wrong> {
        self.count()?;
        let word = match self.token {
            Token::Word(word) => word.to_ascii_lowercase(),
            Token::Number(number) => return self.number("", number),
            Token::Variable(name) => {
                self.advance()?;
                return Ok(Expression::Variable(self.names.intern(name)));
            }
            Token::End => return Err(self.unexpected()),
        };
        match word.as_str() {
            "true" => self.constant(Value::Bool(true)),
            "false" => self.constant(Value::Bool(false)),
            "not" => {
                self.advance()?;
                Ok(Expression::Call(Function::Not, Box::new([self.binary(COMPARISON)?])))
            }
            "+" => {
                self.advance()?;
                self.operand()
            }
            "-" => {
                self.advance()?;
                if let Token::Number(number) = self.token {
                    // The least number has no positive counterpart.
                    return self.number("-", number);
                }
                let zero = Expression::Constant(Value::Int(0));
                Ok(Expression::Call(Function::Subtract, Box::new([zero, self.operand()?])))
            }
            "(" => {
                self.advance()?;
                let inner = self.binary(ANY)?;
                self.expect(")")?;
                Ok(inner)
            }
            name if begins_name(name.as_bytes()[0]) => self.call(name),
            _ => Err(self.unexpected()),
        }
    }

    fn constant(&mut self, value: Value) -> Result<Expression, Wrong> {
        self.advance()?;
        Ok(Expression::Constant(value))
    }

    fn number(&mut self, sign: &str, digits: &str) -> Result<Expression, Wrong> {
        let text = format!("{sign}{digits}");
        let (kind, value) = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            ("bigint", text.parse().ok().map(Value::Int))
        } else {
            ("double", text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Double))
        };
        match value {
            Some(value) => self.constant(value),
            None => Err(self.wrong(format!("{kind} constant overflow ({digits})"))),
        }
    }

    /// Reads the arguments of a function.
    fn call(&mut self, name: &str) -> Result<Expression, Wrong> {
        let named = FUNCTIONS.into_iter().find(|(known, ..)| *known == name);
        let Some((_, function, expected)) = named else {
            return Err(
                self.wrong(format!("unexpected function name ({name}); --driver pgbench may know it"))
            );
        };
        self.advance()?;
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.binary(ANY)?);
        }
        if arguments.len() != expected {
            return Err(self.wrong(format!("unexpected number of arguments ({name})")));
        }
        self.advance()?;
        Ok(Expression::Call(function, arguments.into()))
    }
}

/// Length of the number that begins a text: digits, a fraction, an exponent.
fn number(text: &str) -> usize {
    let digits = |from: usize| from + text.bytes().skip(from).take_while(u8::is_ascii_digit).count();
    let bytes = text.as_bytes();
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}
