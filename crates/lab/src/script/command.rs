//! Reads a script's commands, one after the other, with their arguments and expressions.

use super::Fault;
use super::expression::Expression;
use super::parse;
use super::scan::{Ended, Scanner, Sql, Word};
use super::variables::{Names, VariableId, is_name};

/// A command and where it begins.
#[derive(Debug)]
pub(super) struct Command {
    pub start: usize,
    /// Where that begins which may go wrong when it runs: its expression or amount, else the command.
    pub risk: usize,
    pub kind: Kind,
}

/// What a command does.
#[derive(Debug)]
pub(super) enum Kind {
    Sql(Sql, Option<Keep>),
    Set(VariableId, Expression),
    If(Expression),
    Elif(Expression),
    Else,
    EndIf,
    Sleep(Amount, u32),
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

/// What `\gset` (the last statement's row) and `\aset` (every statement's last row) keep in variables, named by the
/// columns after a prefix.
#[derive(Debug)]
pub(super) struct Keep {
    pub all: bool,
    pub prefix: String,
}

/// How many units to sleep.
#[derive(Debug, Clone, Copy)]
pub(super) enum Amount {
    Constant(i64),
    Variable(VariableId),
}

/// All commands of a script.
pub(super) fn read(script: &str, text: &str, names: &mut Names) -> Result<Vec<Command>, Fault> {
    let mut reader = Reader { script, text, scanner: Scanner::new(text), names, commands: Vec::new() };
    loop {
        let (sql, ended) = reader.scanner.sql();
        if let Some(sql) = sql {
            reader.commands.push(Command { start: sql.start, risk: sql.start, kind: Kind::Sql(sql, None) });
        }
        match ended {
            Ended::Semicolon => {}
            Ended::Backslash(start) => reader.backslash(start)?,
            Ended::End => break,
        }
    }
    if reader.commands.is_empty() {
        return Err(Fault::at(script, text, 0, None, "the script has no command".into()));
    }
    Ok(reader.commands)
}

struct Reader<'a, 'n> {
    script: &'a str,
    text: &'a str,
    scanner: Scanner<'a>,
    names: &'n mut Names,
    commands: Vec<Command>,
}

impl<'a> Reader<'a, '_> {
    fn fault(&self, offset: usize, command: &str, message: impl Into<String>) -> Fault {
        Fault::at(self.script, self.text, offset, Some(command), message.into())
    }

    /// The command after a backslash; a lone backslash is none.
    fn backslash(&mut self, start: usize) -> Result<(), Fault> {
        let Some(name) = self.scanner.word() else { return Ok(()) };
        let command = name.text.to_ascii_lowercase();
        let risk;
        let kind = match command.as_str() {
            "set" => {
                let missing = self.fault(name.start, name.text, "missing argument");
                let variable = self.scanner.word().ok_or(missing)?;
                if !is_name(variable.text.bytes()) {
                    let message = format!("invalid variable name: \"{}\"", variable.text);
                    return Err(self.fault(variable.start, name.text, message));
                }
                risk = self.scanner.next_word();
                Kind::Set(self.names.intern(variable.text), self.expression(name.text)?)
            }
            "if" | "elif" => {
                risk = self.scanner.next_word();
                let condition = self.expression(name.text)?;
                if command == "if" { Kind::If(condition) } else { Kind::Elif(condition) }
            }
            _ => {
                let arguments: Vec<_> = std::iter::from_fn(|| self.scanner.word()).collect();
                risk = arguments.first().map_or(start, |first| first.start);
                let Some(kind) = self.of_words(name, &command, &arguments, start)? else { return Ok(()) };
                kind
            }
        };
        self.commands.push(Command { start, risk, kind });
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

    /// A command whose arguments are words; `None` if it belongs to the one before.
    fn of_words(
        &mut self,
        name: Word<'a>,
        command: &str,
        arguments: &[Word<'a>],
        start: usize,
    ) -> Result<Option<Kind>, Fault> {
        let most = match command {
            "sleep" => 2,
            "gset" | "aset" => 1,
            "else" | "endif" | "startpipeline" | "syncpipeline" | "endpipeline" => 0,
            "shell" | "setshell" => {
                let message = "not supported: the lab starts no processes between statements";
                return Err(self.fault(name.start, name.text, message));
            }
            _ => return Err(self.fault(name.start, name.text, "invalid command")),
        };
        if let Some(extra) = arguments.get(most) {
            let message = if most == 0 { "unexpected argument" } else { "too many arguments" };
            return Err(self.fault(extra.start, name.text, message));
        }
        Ok(Some(match command {
            "sleep" => self.sleep(name, arguments)?,
            "else" => Kind::Else,
            "endif" => Kind::EndIf,
            "startpipeline" => Kind::StartPipeline,
            "syncpipeline" => Kind::SyncPipeline,
            "endpipeline" => Kind::EndPipeline,
            _ => {
                let prefix = arguments.first().map_or(String::new(), |prefix| prefix.text.to_owned());
                let Some(Command { kind: Kind::Sql(_, keep @ None), .. }) = self.commands.last_mut() else {
                    let message = format!("\\{command} must follow an SQL command");
                    return Err(Fault::at(self.script, self.text, start, None, message));
                };
                *keep = Some(Keep { all: command == "aset", prefix });
                return Ok(None);
            }
        }))
    }

    /// `10 ms`, `10ms`, `:pause us`, or seconds.
    fn sleep(&mut self, name: Word<'a>, arguments: &[Word<'a>]) -> Result<Kind, Fault> {
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
        let microseconds = match unit.map(|unit| (unit, unit.text.to_ascii_lowercase())) {
            None => 1_000_000,
            Some((_, text)) if text == "s" => 1_000_000,
            Some((_, text)) if text == "ms" => 1_000,
            Some((_, text)) if text == "us" => 1,
            Some((unit, _)) => {
                let message = format!("unrecognized time unit, must be us, ms or s ({})", unit.text);
                return Err(self.fault(unit.start, name.text, message));
            }
        };
        Ok(Kind::Sleep(units, microseconds))
    }
}
