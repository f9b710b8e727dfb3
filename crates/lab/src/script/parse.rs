//! Reads an expression: pgbench's grammar and its precedences. They are, from the loosest: OR (1),
//! AND (2), NOT (3), IS, ISNULL and NOTNULL (4), comparisons (5, not chained), `| & # << >>` and
//! the prefix `~` (6), `+ -` (7), `* / %` (8), the prefixes `+ -` (9).
//!
//! An expression ends at the line's end; a backslash before that end continues it in the next line.
//! An error's place is the last character of its word, as in pgbench.

use super::expression::Expression;
use super::function::{self, ARGUMENTS_MAX, Function};
use super::value::Value;
use super::variables::{Names, begins_name, continues_name};

#[derive(Debug)]
pub(super) struct Wrong {
    pub offset: usize,
    pub message: String,
}

/// Deeper nesting than any script needs; the stack still bears it.
const DEPTH_MAX: usize = 200;

/// More operators in one expression than any script needs. Each may lie below the next one in the
/// tree, which is as deep then, and recursion walks it.
const OPERATORS_MAX: usize = 1000;

/// Reads the expression that begins at `at`; returns it with the offset after its line.
pub(super) fn expression(text: &str, at: usize, names: &mut Names) -> Result<(Expression, usize), Wrong> {
    let mut parser = Parser { text, at, token: Token::End, names, depth: 0, operators: 0 };
    parser.advance()?;
    let expression = parser.binary(1)?;
    match parser.token {
        Token::End => Ok((expression, parser.at)),
        _ => Err(parser.unexpected()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token<'a> {
    Integer(i64),
    /// 9223372036854775808, which only a minus turns into an integer.
    IntegerEnd,
    Double(f64),
    Variable(&'a str),
    Name(&'a str),
    Keyword(&'static str),
    Symbol(&'static str),
    End,
}

/// Words that are no names.
const KEYWORDS: [&str; 14] = [
    "and", "or", "not", "is", "isnull", "notnull", "null", "true", "false", "case", "when", "then", "else",
    "end",
];

/// The longer ones first.
const SYMBOLS: [&str; 20] = [
    "<<", ">>", "<>", "!=", "<=", ">=", "+", "-", "*", "/", "%", "=", "<", ">", "|", "&", "#", "~", "(", ")",
];

struct Parser<'a, 'n> {
    text: &'a str,
    at: usize,
    token: Token<'a>,
    names: &'n mut Names,
    depth: usize,
    /// Number of operators read so far, between operands or after one.
    operators: usize,
}

impl<'a> Parser<'a, '_> {
    fn wrong(&self, message: &str, about: &str) -> Wrong {
        let message = if about.is_empty() { message.to_owned() } else { format!("{message} ({about})") };
        Wrong { offset: self.at.saturating_sub(1), message }
    }

    fn unexpected(&self) -> Wrong {
        self.wrong("syntax error", "")
    }

    fn advance(&mut self) -> Result<(), Wrong> {
        let bytes = self.text.as_bytes();
        loop {
            match &bytes[self.at..] {
                [b' ' | b'\t' | b'\r' | 0x0b | 0x0c, ..] => self.at += 1,
                [b'\\', b'\n', ..] => self.at += 2,
                [b'\\', b'\r', b'\n', ..] => self.at += 3,
                _ => break,
            }
        }
        let start = self.at;
        let rest = &self.text[start..];
        let run = |from: usize, fits: fn(u8) -> bool| {
            bytes[from..].iter().position(|byte| !fits(*byte)).map_or(bytes.len(), |length| from + length)
        };
        self.token = match bytes.get(start) {
            None => Token::End,
            Some(b'\n') => {
                self.at += 1;
                Token::End
            }
            Some(b',') => {
                self.at += 1;
                Token::Symbol(",")
            }
            Some(b':') if bytes.get(start + 1).is_some_and(|byte| continues_name(*byte)) => {
                self.at = run(start + 1, continues_name);
                Token::Variable(&self.text[start + 1..self.at])
            }
            Some(byte)
                if byte.is_ascii_digit()
                    || (*byte == b'.' && bytes.get(start + 1).is_some_and(u8::is_ascii_digit)) =>
            {
                return self.number();
            }
            Some(byte) if begins_name(*byte) => {
                self.at = run(start, continues_name);
                let word = &self.text[start..self.at];
                let keyword = KEYWORDS.into_iter().find(|known| known.eq_ignore_ascii_case(word));
                keyword.map_or(Token::Name(word), Token::Keyword)
            }
            Some(_) => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => {
                    self.at += symbol.len();
                    Token::Symbol(symbol)
                }
                None => {
                    self.at += 1;
                    return Err(self.wrong("unexpected character", &rest[..1]));
                }
            },
        };
        Ok(())
    }

    fn number(&mut self) -> Result<(), Wrong> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let digits =
            |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(start);
        let mut end = whole;
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if let Some(b'e' | b'E') = bytes.get(end) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        self.at = end;
        let number = &self.text[start..end];
        self.token = if end > whole {
            match number.parse::<f64>() {
                Ok(value) if value.is_finite() => Token::Double(value),
                _ => return Err(self.wrong("double constant overflow", number)),
            }
        } else if number == "9223372036854775808" {
            Token::IntegerEnd
        } else {
            let value = number.parse().map_err(|_| self.wrong("bigint constant overflow", number))?;
            Token::Integer(value)
        };
        Ok(())
    }

    /// Whether the token is this one; skips it then.
    fn take(&mut self, token: Token<'_>) -> Result<bool, Wrong> {
        let is = self.token == token;
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn expect(&mut self, token: Token<'_>) -> Result<(), Wrong> {
        if self.take(token)? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Reads an expression of operators that bind at least this tightly.
    fn binary(&mut self, least: u8) -> Result<Expression, Wrong> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong("expression is nested too deeply", ""));
        }
        let mut left = self.prefix()?;
        let mut compared = false;
        while let Some((level, operator)) = operator(self.token) {
            if level < least {
                break;
            }
            if level == COMPARISON && compared {
                return Err(self.unexpected());
            }
            self.operators += 1;
            if self.operators > OPERATORS_MAX {
                return Err(self.wrong("expression is too long", ""));
            }
            compared = level == COMPARISON;
            let token = self.token;
            self.advance()?;
            left = match operator {
                Operator::Call(function) => {
                    Expression::Call(function, Box::new([left, self.binary(level + 1)?]))
                }
                Operator::Swapped(function) => {
                    Expression::Call(function, Box::new([self.binary(level + 1)?, left]))
                }
                Operator::And => Expression::And(Box::new([left, self.binary(level + 1)?])),
                Operator::Or => Expression::Or(Box::new([left, self.binary(level + 1)?])),
                Operator::Is => self.is(left, token)?,
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Reads the part after IS, ISNULL or NOTNULL.
    fn is(&mut self, left: Expression, token: Token<'_>) -> Result<Expression, Wrong> {
        let (not, value) = match token {
            Token::Keyword("isnull") => (false, Value::Null),
            Token::Keyword("notnull") => (true, Value::Null),
            _ => {
                let not = self.take(Token::Keyword("not"))?;
                let value = self.word_constant().ok_or_else(|| self.unexpected())?;
                self.advance()?;
                (not, value)
            }
        };
        let is = Expression::Call(Function::Is, Box::new([left, Expression::Constant(value)]));
        Ok(if not { Expression::Call(Function::Not, Box::new([is])) } else { is })
    }

    fn word_constant(&self) -> Option<Value> {
        match self.token {
            Token::Keyword("null") => Some(Value::Null),
            Token::Keyword("true") => Some(Value::Bool(true)),
            Token::Keyword("false") => Some(Value::Bool(false)),
            _ => None,
        }
    }

    /// Reads an operand and its prefixes.
    fn prefix(&mut self) -> Result<Expression, Wrong> {
        let token = self.token;
        if let Some(value) = self.word_constant() {
            self.advance()?;
            return Ok(Expression::Constant(value));
        }
        let constant = |value: Value| Expression::Constant(value);
        match token {
            Token::Name(name) => return self.call(name),
            Token::Keyword("case") => return self.case(),
            Token::Integer(_) | Token::Double(_) | Token::Variable(_) => self.advance()?,
            Token::Symbol("(" | "+" | "-" | "~") => self.advance()?,
            Token::Keyword("not") => {
                self.advance()?;
                return Ok(Expression::Call(Function::Not, Box::new([self.binary(4)?])));
            }
            _ => return Err(self.unexpected()),
        }
        match token {
            Token::Integer(value) => Ok(constant(Value::Int(value))),
            Token::Double(value) => Ok(constant(Value::Double(value))),
            Token::Variable(name) => Ok(Expression::Variable(self.names.intern(name))),
            Token::Symbol("(") => {
                let inner = self.binary(1)?;
                self.expect(Token::Symbol(")"))?;
                Ok(inner)
            }
            Token::Symbol("+") => self.binary(9),
            Token::Symbol("-") if self.token == Token::IntegerEnd => {
                self.advance()?;
                Ok(constant(Value::Int(i64::MIN)))
            }
            // -x is 0 - x, and ~x is -1 # x.
            Token::Symbol("-") => {
                let zero = constant(Value::Int(0));
                Ok(Expression::Call(Function::Subtract, Box::new([zero, self.binary(9)?])))
            }
            _ => {
                let ones = constant(Value::Int(-1));
                Ok(Expression::Call(Function::BitXor, Box::new([ones, self.binary(7)?])))
            }
        }
    }

    fn call(&mut self, name: &'a str) -> Result<Expression, Wrong> {
        let named = function::find(name).ok_or_else(|| self.wrong("unexpected function name", name))?;
        let (known, function, fewest, most) = named;
        self.advance()?;
        self.expect(Token::Symbol("("))?;
        let mut arguments = Vec::new();
        if self.token != Token::Symbol(")") {
            // As in pgbench, the list may begin with a comma.
            if self.token != Token::Symbol(",") {
                arguments.push(self.binary(1)?);
            }
            while self.take(Token::Symbol(","))? {
                arguments.push(self.binary(1)?);
            }
        }
        if self.token != Token::Symbol(")") {
            return Err(self.unexpected());
        }
        if arguments.len() < fewest && most == usize::MAX {
            return Err(self.wrong("at least one argument expected", known));
        }
        if !(fewest..=most).contains(&arguments.len()) {
            return Err(self.wrong("unexpected number of arguments", known));
        }
        if arguments.len() > ARGUMENTS_MAX {
            return Err(self.wrong("too many function arguments, maximum is 16", known));
        }
        self.advance()?;
        Ok(Expression::Call(function, arguments.into()))
    }

    fn case(&mut self) -> Result<Expression, Wrong> {
        self.advance()?;
        let mut cases = Vec::new();
        while cases.is_empty() || self.token == Token::Keyword("when") {
            self.expect(Token::Keyword("when"))?;
            let condition = self.binary(1)?;
            self.expect(Token::Keyword("then"))?;
            cases.push((condition, self.binary(1)?));
        }
        let otherwise = if self.take(Token::Keyword("else"))? {
            self.binary(1)?
        } else {
            Expression::Constant(Value::Null)
        };
        self.expect(Token::Keyword("end"))?;
        Ok(Expression::Case(cases.into(), Box::new(otherwise)))
    }
}

const COMPARISON: u8 = 5;

enum Operator {
    Call(Function),
    /// With its sides exchanged: `a > b` is `b < a`.
    Swapped(Function),
    And,
    Or,
    /// IS, ISNULL, NOTNULL.
    Is,
}

/// The precedence of a token as an operator between two operands or after one, and its meaning.
fn operator(token: Token<'_>) -> Option<(u8, Operator)> {
    use Function as F;
    use Operator::{Call, Swapped};
    Some(match token {
        Token::Keyword("or") => (1, Operator::Or),
        Token::Keyword("and") => (2, Operator::And),
        Token::Keyword("is" | "isnull" | "notnull") => (4, Operator::Is),
        Token::Symbol(symbol) => match symbol {
            "=" => (COMPARISON, Call(F::Equal)),
            "<>" | "!=" => (COMPARISON, Call(F::NotEqual)),
            "<" => (COMPARISON, Call(F::Less)),
            "<=" => (COMPARISON, Call(F::LessOrEqual)),
            ">" => (COMPARISON, Swapped(F::Less)),
            ">=" => (COMPARISON, Swapped(F::LessOrEqual)),
            "|" => (6, Call(F::BitOr)),
            "&" => (6, Call(F::BitAnd)),
            "#" => (6, Call(F::BitXor)),
            "<<" => (6, Call(F::ShiftLeft)),
            ">>" => (6, Call(F::ShiftRight)),
            "+" => (7, Call(F::Add)),
            "-" => (7, Call(F::Subtract)),
            "*" => (8, Call(F::Multiply)),
            "/" => (8, Call(F::Divide)),
            "%" => (8, Call(F::Modulo)),
            _ => return None,
        },
        _ => return None,
    })
}
