//! Reads a script's commands, one after the other, into ops. It parses expressions and resolves
//! jumps. It leaves SQL uncut, since later scripts may still name variables.

use crate::client::StatementId;

use super::expression::Expression;
use super::parse;
use super::scan::{Part, Scanner, Word};
use super::source::{Source, fault, line};
use super::value::Value;
use super::variables::{Names, VariableId, is_name};

/// The ops of a script, which a client steps through.
#[derive(Debug)]
pub(super) struct Script {
    pub ops: Vec<Op>,
    /// Each op's line, from 1.
    pub lines: Vec<usize>,
    pub weight: i64,
}

#[derive(Debug)]
pub(super) enum Op {
    Set(VariableId, Expression),
    /// Runs a statement. `\gset` keeps a row of its answer in variables of this prefix, which the
    /// column names complete.
    Run {
        statement: StatementId,
        keep: Option<String>,
    },
    /// Jumps unless the condition holds.
    Unless(Expression, usize),
    Jump(usize),
    /// Units, and microseconds of each.
    Sleep(Expression, u32),
}

/// A statement of a script: the script's number among those of the mix, the text, and its offset.
#[derive(Debug)]
pub(super) struct Sql {
    pub script: usize,
    pub text: String,
    pub start: usize,
}

/// The scripts of a mix, as far as they are read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub scripts: Vec<Script>,
    pub names: Names,
    /// By [`StatementId`].
    pub statements: Vec<Sql>,
}

impl Reading {
    pub(super) fn read(&mut self, source: &Source) -> Result<(), String> {
        let script = Script { ops: Vec::new(), lines: Vec::new(), weight: source.weight.into() };
        let scanner = Scanner::new(&source.text);
        let mut reader = Reader { source, scanner, mix: self, script, last: None, open: Vec::new() };
        loop {
            match reader.scanner.part() {
                Part::Sql(text, start) => reader.sql(text, start)?,
                Part::Backslash(start) => reader.backslash(start)?,
                Part::End => break,
            }
        }
        match reader.open.last() {
            _ if reader.script.ops.is_empty() => Err(format!("{}: the script has no command", source.name)),
            Some(open) => Err(fault(source, open.start, "\\if without matching \\endif")),
            None => {
                let script = reader.script;
                self.scripts.push(script);
                Ok(())
            }
        }
    }
}

struct Reader<'a> {
    source: &'a Source,
    scanner: Scanner<'a>,
    mix: &'a mut Reading,
    script: Script,
    /// The op of the SQL command that a following `\gset` would belong to.
    last: Option<usize>,
    open: Vec<Open>,
}

/// An `\if` without its `\endif`.
struct Open {
    start: usize,
    /// The condition whose jump target is still open.
    unless: Option<usize>,
    /// Jumps to the end.
    ends: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn fault<T>(&self, offset: usize, message: &str) -> Result<T, String> {
        Err(fault(self.source, offset, message))
    }

    /// Adds an op whose command begins at this byte; returns its number.
    fn push(&mut self, op: Op, start: usize) -> usize {
        self.script.ops.push(op);
        self.script.lines.push(line(&self.source.text, start).1);
        self.script.ops.len() - 1
    }

    fn sql(&mut self, text: String, start: usize) -> Result<(), String> {
        let Ok(number) = u16::try_from(self.mix.statements.len()) else {
            return self.fault(start, "too many statements: use up to 65536");
        };
        self.mix.statements.push(Sql { script: self.mix.scripts.len(), text, start });
        self.last = Some(self.push(Op::Run { statement: StatementId(number), keep: None }, start));
        Ok(())
    }

    /// Reads the command of a backslash at this offset.
    fn backslash(&mut self, start: usize) -> Result<(), String> {
        let Some(name) = self.scanner.word() else { return Ok(()) };
        let last = self.last.take();
        match name.text.to_ascii_lowercase().as_str() {
            "set" => {
                let Some(variable) = self.scanner.word() else {
                    return self.fault(name.start, "missing argument");
                };
                if !is_name(variable.text) {
                    let message = format!("invalid variable name: \"{}\"", variable.text);
                    return self.fault(variable.start, &message);
                }
                let op = Op::Set(self.mix.names.intern(variable.text), self.expression()?);
                self.push(op, start);
            }
            "if" => {
                self.open.push(Open { start, unless: None, ends: Vec::new() });
                self.condition(start)?;
            }
            "elif" => {
                self.branch(start, "\\elif")?;
                self.condition(start)?;
            }
            "else" => {
                self.arguments(0)?;
                self.branch(start, "\\else")?;
            }
            "endif" => {
                self.arguments(0)?;
                let Some(open) = self.open.pop() else {
                    return self.fault(start, "\\endif without matching \\if");
                };
                open.unless.into_iter().chain(open.ends).for_each(|op| self.jump_here(op));
            }
            "gset" => {
                let prefix = self.arguments(1)?.first().map_or("", |prefix| prefix.text);
                match last.map(|op| &mut self.script.ops[op]) {
                    Some(Op::Run { keep, .. }) => *keep = Some(prefix.to_owned()),
                    _ => return self.fault(start, "\\gset must follow an SQL command"),
                }
            }
            "sleep" => {
                let op = self.sleep(name)?;
                self.push(op, start);
            }
            _ => return self.fault(name.start, "invalid command; --driver pgbench may know it"),
        }
        Ok(())
    }

    fn expression(&mut self) -> Result<Expression, String> {
        match parse::expression(&self.source.text, self.scanner.at, &mut self.mix.names) {
            Ok((expression, after)) => {
                self.scanner.at = after;
                Ok(expression)
            }
            Err(wrong) => self.fault(wrong.offset, &wrong.message),
        }
    }

    /// Reads the condition of the innermost `\if`'s next branch.
    fn condition(&mut self, start: usize) -> Result<(), String> {
        let condition = self.expression()?;
        let unless = self.push(Op::Unless(condition, 0), start);
        self.open.last_mut().expect("one is open").unless = Some(unless);
        Ok(())
    }

    /// Ends a branch of the innermost `\if`; another follows.
    fn branch(&mut self, start: usize, command: &str) -> Result<(), String> {
        let end = self.script.ops.len();
        let Some(open) = self.open.last_mut() else {
            return self.fault(start, &format!("{command} without matching \\if"));
        };
        let Some(before) = open.unless.take() else {
            return self.fault(start, &format!("{command} after \\else"));
        };
        open.ends.push(end);
        self.push(Op::Jump(0), start);
        self.jump_here(before);
        Ok(())
    }

    /// Makes a jump or a condition continue at the next op.
    fn jump_here(&mut self, op: usize) {
        let next = self.script.ops.len();
        if let Op::Unless(_, to) | Op::Jump(to) = &mut self.script.ops[op] {
            *to = next;
        }
    }

    /// The remaining words of a command, up to this many.
    fn arguments(&mut self, most: usize) -> Result<Vec<Word<'a>>, String> {
        let words = self.scanner.words();
        match words.get(most) {
            Some(extra) => self.fault(extra.start, "too many arguments"),
            None => Ok(words),
        }
    }

    /// Parses `10 ms`, `10ms`, `:pause us`, or seconds.
    fn sleep(&mut self, name: Word<'a>) -> Result<Op, String> {
        let arguments = self.arguments(2)?;
        let Some(amount) = arguments.first() else { return self.fault(name.start, "missing argument") };
        let (units, mut unit) = if let Some(variable) = amount.text.strip_prefix(':') {
            (Expression::Variable(self.mix.names.intern(variable)), "")
        } else {
            let end = amount.text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(amount.text.len());
            let (number, unit) = amount.text.split_at(end);
            let Ok(number) = number.parse() else {
                return self.fault(amount.start, "invalid sleep time, must be an integer");
            };
            (Expression::Constant(Value::Int(number)), unit)
        };
        let last = arguments[arguments.len() - 1];
        if unit.is_empty() {
            unit = arguments.get(1).map_or("s", |unit| unit.text);
        }
        match unit.to_ascii_lowercase().as_str() {
            "s" => Ok(Op::Sleep(units, 1_000_000)),
            "ms" => Ok(Op::Sleep(units, 1_000)),
            "us" => Ok(Op::Sleep(units, 1)),
            _ => self.fault(last.start, &format!("unrecognized time unit, must be us, ms or s ({})", unit)),
        }
    }
}
