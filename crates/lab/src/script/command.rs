//! Reads a script's commands, one after the other, into ops. It parses expressions and resolves
//! jumps. It leaves SQL uncut, since later scripts may still name variables.

use crate::client::StatementId;

use super::op::{Amount, Keep, Op, Place, Script};
use super::scan::{Ended, Scanner, Word};
use super::variables::{Names, is_name};
use super::{Fault, expression::Expression, parse, place};

/// An SQL command: the op that runs it, its text, and its offset.
pub(super) type Sql = (usize, String, usize);

pub(super) fn read(
    name: &str,
    text: &str,
    weight: u32,
    names: &mut Names,
) -> Result<(Script, Vec<Sql>), Fault> {
    let script = Script { ops: Vec::new(), places: Vec::new(), assigned: Vec::new(), weight: weight.into() };
    let scanner = Scanner::new(text);
    let mut reader =
        Reader { name, text, scanner, names, script, sql: Vec::new(), last: None, open: Vec::new() };
    let mut commands = 0;
    loop {
        let (sql, ended) = reader.scanner.sql();
        if let Some((sql, start)) = sql {
            let op = Op::Run { statement: StatementId(0), variables: Box::default(), keep: None };
            reader.push(op, start);
            reader.sql.push((reader.script.ops.len() - 1, sql, start));
            reader.last = Some(reader.script.ops.len() - 1);
            commands += 1;
        }
        match ended {
            Ended::Semicolon => {}
            Ended::Backslash(start) => {
                commands += 1;
                reader.backslash(start)?;
            }
            Ended::End => break,
        }
    }
    match reader.open.last() {
        _ if commands == 0 => Err(Fault::at(name, text, 0, None, "the script has no command".into())),
        Some(open) => Err(Fault::at(name, text, open.start, None, "\\if without matching \\endif".into())),
        None => Ok((reader.script, reader.sql)),
    }
}

struct Reader<'a, 'n> {
    name: &'a str,
    text: &'a str,
    scanner: Scanner<'a>,
    names: &'n mut Names,
    script: Script,
    sql: Vec<Sql>,
    /// The op of the SQL command that a following `\gset` would belong to.
    last: Option<usize>,
    open: Vec<Open>,
}

struct Open {
    start: usize,
    /// The condition whose jump target is still open.
    unless: Option<usize>,
    /// Jumps to the end.
    ends: Vec<usize>,
}

impl<'a> Reader<'a, '_> {
    fn fault(&self, offset: usize, command: &str, message: impl Into<String>) -> Fault {
        Fault::at(self.name, self.text, offset, Some(command), message.into())
    }

    /// Adds an op whose errors point to this byte; returns its number.
    fn push(&mut self, op: Op, risk: usize) -> usize {
        let (_, line, column) = place(self.text, risk);
        self.script.ops.push(op);
        self.script.places.push(Place { line: line as u32, column: column as u32 });
        self.script.ops.len() - 1
    }

    fn backslash(&mut self, start: usize) -> Result<(), Fault> {
        if self.text[start..].starts_with("\\;") {
            let message = "\\; is not supported by the lab; --driver pgbench runs it".to_owned();
            return Err(Fault::at(self.name, self.text, start, None, message));
        }
        let Some(name) = self.scanner.word() else { return Ok(()) };
        let command = name.text.to_ascii_lowercase();
        match command.as_str() {
            "set" => {
                let missing = self.fault(name.start, name.text, "missing argument");
                let variable = self.scanner.word().ok_or(missing)?;
                if !is_name(variable.text.bytes()) {
                    let message = format!("invalid variable name: \"{}\"", variable.text);
                    return Err(self.fault(variable.start, name.text, message));
                }
                let risk = self.scanner.next_word();
                let op = Op::Set(self.names.intern(variable.text), self.expression(name.text)?);
                self.push(op, risk);
            }
            "if" | "elif" => {
                let risk = self.scanner.next_word();
                let condition = self.expression(name.text)?;
                if command == "if" {
                    self.open.push(Open { start, unless: None, ends: Vec::new() });
                } else {
                    self.branch("elif", start)?;
                }
                let unless = self.push(Op::Unless(condition, 0), risk);
                self.open.last_mut().expect("one is open").unless = Some(unless);
            }
            _ => {
                let arguments: Vec<_> = std::iter::from_fn(|| self.scanner.word()).collect();
                self.words(name, &command, &arguments, start)?;
            }
        }
        self.last = None;
        Ok(())
    }

    fn expression(&mut self, command: &str) -> Result<Expression, Fault> {
        match parse::expression(self.text, self.scanner.at, self.names) {
            Ok((expression, after)) => {
                self.scanner.at = after;
                Ok(expression)
            }
            Err(wrong) => Err(self.fault(wrong.offset, command, wrong.message)),
        }
    }

    /// Ends a branch of the innermost `\if`; another follows.
    fn branch(&mut self, command: &str, start: usize) -> Result<(), Fault> {
        let at = |message: String| Fault::at(self.name, self.text, start, None, message);
        let open = self.open.last_mut().ok_or_else(|| at(format!("\\{command} without matching \\if")))?;
        let before = open.unless.take().ok_or_else(|| at(format!("\\{command} after \\else")))?;
        let jump = self.script.ops.len();
        open.ends.push(jump);
        self.push(Op::Jump(0), start);
        self.go_on(before);
        Ok(())
    }

    /// Makes a jump or a condition continue at the next op.
    fn go_on(&mut self, op: usize) {
        let next = self.script.ops.len();
        if let Op::Unless(_, to) | Op::Jump(to) = &mut self.script.ops[op] {
            *to = next;
        }
    }

    /// Reads a command whose arguments are words.
    fn words(
        &mut self,
        name: Word<'a>,
        command: &str,
        arguments: &[Word<'a>],
        start: usize,
    ) -> Result<(), Fault> {
        let most = match command {
            "sleep" => 2,
            "gset" => 1,
            "else" | "endif" => 0,
            "startpipeline" => {
                let message = "not supported by the lab; --pipeline makes one of each transaction";
                return Err(self.fault(name.start, name.text, message));
            }
            "aset" | "shell" | "setshell" => {
                let message = "not supported by the lab; --driver pgbench runs it";
                return Err(self.fault(name.start, name.text, message));
            }
            _ => return Err(self.fault(name.start, name.text, "invalid command")),
        };
        if let Some(extra) = arguments.get(most) {
            let message = if most == 0 { "unexpected argument" } else { "too many arguments" };
            return Err(self.fault(extra.start, name.text, message));
        }
        let at = |message: &str| Fault::at(self.name, self.text, start, None, message.to_owned());
        let op = match command {
            "sleep" => self.sleep(name, arguments)?,
            "else" => return self.branch("else", start),
            "endif" => {
                let open = self.open.pop().ok_or_else(|| at("\\endif without matching \\if"))?;
                open.unless.into_iter().chain(open.ends).for_each(|op| self.go_on(op));
                return Ok(());
            }
            _ => {
                let last = self.last.ok_or_else(|| at("\\gset must follow an SQL command"))?;
                if let Op::Run { keep, .. } = &mut self.script.ops[last] {
                    *keep =
                        Some(Keep(arguments.first().map_or(String::new(), |prefix| prefix.text.to_owned())));
                }
                return Ok(());
            }
        };
        self.push(op, arguments.first().map_or(start, |first| first.start));
        Ok(())
    }

    /// Parses `10 ms`, `10ms`, `:pause us`, or seconds.
    fn sleep(&mut self, name: Word<'a>, arguments: &[Word<'a>]) -> Result<Op, Fault> {
        let Some(amount) = arguments.first() else {
            return Err(self.fault(name.start, name.text, "missing argument"));
        };
        let mut unit = arguments.get(1).copied();
        let units = if let Some(variable) = amount.text.strip_prefix(':') {
            Amount::Variable(self.names.intern(variable))
        } else {
            let digits = amount.text.trim_start_matches(['+', '-']);
            let end = amount.text.len() - digits.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = amount.text.split_at(end);
            let units = number.parse().ok().filter(|_| rest.is_empty() || unit.is_none());
            let message = || format!("invalid sleep time, must be an integer ({})", amount.text);
            let units = units.ok_or_else(|| self.fault(amount.start, name.text, message()))?;
            if !rest.is_empty() {
                unit = Some(Word { text: rest, start: amount.start + end });
            }
            Amount::Constant(units)
        };
        let microseconds = match unit.map_or("s".to_owned(), |unit| unit.text.to_ascii_lowercase()).as_str() {
            "s" => 1_000_000,
            "ms" => 1_000,
            "us" => 1,
            _ => {
                let unit = unit.unwrap_or(*amount);
                let message = format!("unrecognized time unit, must be us, ms or s ({})", unit.text);
                return Err(self.fault(unit.start, name.text, message));
            }
        };
        Ok(Op::Sleep(units, microseconds))
    }
}
