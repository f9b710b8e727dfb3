//! Puts the scripts of a mix together: variables numbered, jumps resolved, SQL cut at its variables. The result never
//! changes and is shared by all clients.

use std::collections::BTreeSet;
use std::fs;

use crate::client::{Prepare, Statement, Wanted};
use crate::client::{Random, StatementId};

use super::command::{self, Amount, Command, Keep, Kind};
use super::expression::Expression;
use super::scan::Sql;
use super::value::Value;
use super::variables::{Names, VariableId, Variables, begins_name, continues_name, is_name};
use super::{Fault, place};

/// Most scripts of a mix, as in pgbench.
const SCRIPTS_MAX: usize = 128;

/// Most variables of a statement, as in pgbench.
const PLACES_MAX: usize = 255;

/// A script's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its file or name, for errors and results.
    pub name: String,
    /// What it says.
    pub text: String,
    /// How often it is chosen, in proportion to those of the others.
    pub weight: u32,
}

impl Source {
    /// Takes `name@weight` apart; the weight is 1 where none is given.
    pub fn weighted(option: &str) -> Result<(&str, u32), String> {
        match option.rsplit_once('@') {
            None => Ok((option, 1)),
            Some((name, weight)) => match weight.parse::<u32>() {
                Ok(weight) if weight <= i32::MAX as u32 => Ok((name, weight)),
                _ => Err(format!(
                    "invalid weight of a script: '{option}': write NAME@NUMBER, up to {}",
                    i32::MAX
                )),
            },
        }
    }

    /// Reads the file of `file@weight`.
    pub fn file(option: &str) -> Result<Self, String> {
        let (name, weight) = Self::weighted(option)?;
        let text =
            fs::read_to_string(name).map_err(|error| format!("can't read the script {name}: {error}"))?;
        Ok(Self { name: name.to_owned(), text, weight })
    }
}

/// What scripts know from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Variables of the command line, and their texts.
    pub defines: Vec<(String, String)>,
    /// `:scale`.
    pub scale: i64,
    /// `:random_seed`, which `:default_seed` is drawn from.
    pub seed: u64,
}

impl Settings {
    /// Adds a variable, given as `name=value`. `scale` is none: pgbench takes it and leaves the tables as they are, so that
    /// keys are drawn which these don't have.
    pub fn define(&mut self, option: &str) -> Result<(), String> {
        match option.split_once('=') {
            Some(("scale", value)) => Err(format!(
                "-D {option} would change :scale and not the tables: take --scale {value}, which is both"
            )),
            Some((name, value)) if !value.is_empty() && is_name(name.bytes()) => {
                self.defines.push((name.to_owned(), value.to_owned()));
                Ok(())
            }
            _ => Err(format!(
                "invalid variable: '{option}': write NAME=VALUE, the name of letters, digits and _"
            )),
        }
    }
}

/// All scripts of a mix, ready to run.
#[derive(Debug)]
pub struct Program {
    pub(super) scripts: Vec<Script>,
    pub(super) names: Names,
    /// The names in order, for those that results bring.
    pub(super) sorted: Vec<(String, VariableId)>,
    /// What a client begins with, but for `client_id`.
    pub(super) initial: Variables,
    pub(super) client_id: VariableId,
    /// Sum of the scripts' weights.
    pub(super) weight: i64,
    statements: Vec<Statement>,
    kinds: Vec<String>,
}

/// One script.
#[derive(Debug)]
pub(super) struct Script {
    pub ops: Vec<Op>,
    /// Of each op.
    pub places: Vec<Place>,
    /// The variables that it may set.
    pub assigned: Vec<VariableId>,
    pub weight: i64,
}

/// Where an op stands; all from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub line: u32,
    pub column: u32,
    pub command: u32,
}

/// One step of a script.
#[derive(Debug)]
pub(super) enum Op {
    Set(VariableId, Expression),
    /// Variables are the statement's parameters, in order.
    Run {
        statement: StatementId,
        variables: Box<[VariableId]>,
        keep: Option<Keep>,
    },
    /// Goes on elsewhere unless the condition holds.
    Unless(Expression, usize),
    Jump(usize),
    /// Units, and microseconds of each.
    Sleep(Amount, u32),
    StartPipeline,
    SyncPipeline,
    EndPipeline,
}

impl Program {
    /// Puts the scripts together. The error shows the place, as [`Fault`] does.
    pub fn new(sources: &[Source], settings: &Settings) -> Result<Self, String> {
        if sources.is_empty() || sources.len() > SCRIPTS_MAX {
            return Err(format!("{} scripts given: use 1 to {SCRIPTS_MAX}", sources.len()));
        }
        let weight = sources.iter().map(|source| i64::from(source.weight)).sum();
        if weight == 0 {
            return Err("all scripts have weight 0: nothing would run".into());
        }
        let mut names = Names::default();
        let automatic = ["client_id", "default_seed", "random_seed", "scale"].map(|name| names.intern(name));
        let mut settable: BTreeSet<VariableId> = automatic.into();
        settable.extend(settings.defines.iter().map(|(name, _)| names.intern(name)));

        let read = |source: &Source| command::read(&source.name, &source.text, &mut names);
        let commands: Vec<_> =
            sources.iter().map(read).collect::<Result<_, _>>().map_err(|fault| fault.to_string())?;
        let kinds = commands.iter().flatten().map(|command| &command.kind);
        settable.extend(
            kinds.clone().filter_map(|kind| if let Kind::Set(id, _) = kind { Some(*id) } else { None }),
        );
        let prefixes = kinds.filter_map(|kind| {
            if let Kind::Sql(_, Some(keep)) = kind { Some(keep.prefix.clone()) } else { None }
        });

        let settable = Settable { ids: settable, prefixes: prefixes.collect() };
        let mut linker = Linker { names, settable, statements: Vec::new() };
        let mut scripts = Vec::new();
        for (source, commands) in sources.iter().zip(commands) {
            scripts.push(linker.link(source, commands).map_err(|fault| fault.to_string())?);
        }
        let Linker { names, statements, .. } = linker;
        // Only now all names are known that a result may bring.
        for script in &mut scripts {
            script.assigned = assigned(script, &names);
        }
        let mut initial = Variables::new(names.len());
        let [client_id, default_seed, random_seed, scale] = automatic;
        initial.set(default_seed, Value::Int(Random::new(settings.seed, u64::MAX).bits() as i64));
        initial.set(random_seed, Value::Int(settings.seed as i64));
        initial.set(scale, Value::Int(settings.scale));
        let sorted = names.sorted();
        for (name, text) in &settings.defines {
            let place = sorted.binary_search_by(|(sorted, _)| sorted.cmp(name));
            initial.set_text(sorted[place.expect("defines were interned")].1, text);
        }
        let kinds = sources.iter().map(|source| source.name.clone()).collect();
        Ok(Self { scripts, sorted, names, initial, client_id, weight, statements, kinds })
    }

    /// All statements, by [`StatementId`].
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Where the first pipeline begins, if any: the simple protocol has none.
    pub fn pipeline(&self) -> Option<String> {
        self.scripts.iter().zip(&self.kinds).find_map(|(script, kind)| {
            let at = script.ops.iter().position(|op| matches!(op, Op::StartPipeline))?;
            Some(format!("{kind}:{}", script.places[at].line))
        })
    }

    /// Whether each script can go as one pipeline: nothing in it wants an answer before its end, it has none of its own, and
    /// there is something to gain. The error says where not and why.
    pub fn pipelines(&self) -> Result<(), String> {
        let mut most = 0;
        for (script, kind) in self.scripts.iter().zip(&self.kinds) {
            let mut statements = 0;
            for (op, place) in script.ops.iter().zip(&script.places) {
                let why = match op {
                    Op::Run { keep: Some(_), .. } => {
                        "\\gset and \\aset want an answer before the next statement"
                    }
                    Op::Run { statement, .. }
                        if self.statements[usize::from(statement.0)].prepare == Prepare::Never =>
                    {
                        "statements joined by \\; go as text, which no pipeline takes"
                    }
                    Op::Run { .. } => {
                        statements += 1;
                        continue;
                    }
                    Op::StartPipeline | Op::SyncPipeline | Op::EndPipeline => {
                        "the script says itself what is a pipeline"
                    }
                    _ => continue,
                };
                return Err(format!("{kind}:{}: {why}", place.line));
            }
            most = most.max(statements);
        }
        match most {
            0 | 1 => Err(format!("a transaction of {} is a single statement", self.kinds.join("+"))),
            _ => Ok(()),
        }
    }

    /// Which script a statement stands in, and in which line.
    pub fn place(&self, statement: StatementId) -> (usize, u32) {
        let is = |op: &Op| matches!(op, Op::Run { statement: other, .. } if *other == statement);
        let found =
            self.scripts.iter().enumerate().find_map(|(number, script)| {
                Some((number, script.places[script.ops.iter().position(is)?].line))
            });
        found.expect("each statement is run by an op")
    }

    /// The scripts' names.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }
}

/// The variables a script may set: those of `\set`, and those that its results may bring.
fn assigned(script: &Script, names: &Names) -> Vec<VariableId> {
    let mut ids = BTreeSet::new();
    for op in &script.ops {
        match op {
            Op::Set(id, _) => {
                ids.insert(*id);
            }
            Op::Run { keep: Some(keep), .. } => {
                let brought = names.sorted().into_iter().filter(|(name, _)| name.starts_with(&keep.prefix));
                ids.extend(brought.map(|(_, id)| id));
            }
            _ => {}
        }
    }
    ids.into_iter().collect()
}

/// Which names can ever have a value.
struct Settable {
    ids: BTreeSet<VariableId>,
    prefixes: Vec<String>,
}

struct Linker {
    names: Names,
    settable: Settable,
    statements: Vec<Statement>,
}

/// An `\if` that is open.
struct Open {
    start: usize,
    /// The condition that still has to learn where to go on.
    unless: Option<usize>,
    /// Jumps to the end.
    ends: Vec<usize>,
}

impl Linker {
    fn link(&mut self, source: &Source, commands: Vec<Command>) -> Result<Script, Fault> {
        let mut script = Script {
            ops: Vec::new(),
            places: Vec::new(),
            assigned: Vec::new(),
            weight: source.weight.into(),
        };
        let mut open: Vec<Open> = Vec::new();
        for (number, Command { start, risk, kind }) in commands.into_iter().enumerate() {
            let fault = |message: String| Fault::at(&source.name, &source.text, start, None, message);
            let (_, line, column) = place(&source.text, risk);
            let place = Place { line: line as u32, column: column as u32, command: number as u32 + 1 };
            let mut push = |op: Op| {
                script.ops.push(op);
                script.places.push(place);
                script.ops.len()
            };
            match kind {
                Kind::Sql(sql, keep) => {
                    let op = self.statement(sql, keep).map_err(fault)?;
                    push(op);
                }
                Kind::Set(id, expression) => _ = push(Op::Set(id, expression)),
                Kind::Sleep(amount, unit) => _ = push(Op::Sleep(amount, unit)),
                Kind::StartPipeline => _ = push(Op::StartPipeline),
                Kind::SyncPipeline => _ = push(Op::SyncPipeline),
                Kind::EndPipeline => _ = push(Op::EndPipeline),
                Kind::If(condition) => {
                    let unless = push(Op::Unless(condition, 0)) - 1;
                    open.push(Open { start, unless: Some(unless), ends: Vec::new() });
                }
                Kind::Elif(condition) => {
                    let innermost =
                        open.last_mut().ok_or_else(|| fault("\\elif without matching \\if".into()))?;
                    let before =
                        innermost.unless.take().ok_or_else(|| fault("\\elif after \\else".into()))?;
                    let after = push(Op::Jump(0));
                    innermost.ends.push(after - 1);
                    innermost.unless = Some(push(Op::Unless(condition, 0)) - 1);
                    go_on(&mut script.ops[before], after);
                }
                Kind::Else => {
                    let innermost =
                        open.last_mut().ok_or_else(|| fault("\\else without matching \\if".into()))?;
                    let before =
                        innermost.unless.take().ok_or_else(|| fault("\\else after \\else".into()))?;
                    let after = push(Op::Jump(0));
                    innermost.ends.push(after - 1);
                    go_on(&mut script.ops[before], after);
                }
                Kind::EndIf => {
                    let innermost =
                        open.pop().ok_or_else(|| fault("\\endif without matching \\if".into()))?;
                    let end = script.ops.len();
                    innermost
                        .unless
                        .iter()
                        .chain(&innermost.ends)
                        .for_each(|op| go_on(&mut script.ops[*op], end));
                }
            }
        }
        match open.last() {
            Some(Open { start, .. }) => Err(Fault::at(
                &source.name,
                &source.text,
                *start,
                None,
                "\\if without matching \\endif".into(),
            )),
            None => Ok(script),
        }
    }

    /// Cuts a command at its variables.
    fn statement(&mut self, sql: Sql, keep: Option<Keep>) -> Result<Op, String> {
        let (mut pieces, mut variables) = (vec![String::new()], Vec::new());
        let mut rest = sql.text.as_str();
        while let Some(colon) = rest.find(':') {
            let (before, after) = rest.split_at(colon);
            let piece = pieces.last_mut().expect("there is always one");
            piece.push_str(before);
            let name = &after[1..];
            let length = name.bytes().take_while(|byte| continues_name(*byte)).count();
            let colons = after.bytes().take_while(|byte| *byte == b':').count();
            if length > 0 && begins_name(name.as_bytes()[0]) && self.can_be_set(&name[..length]) {
                variables.push(self.names.intern(&name[..length]));
                pieces.push(String::new());
                rest = &name[length..];
            } else {
                // A cast's colons are passed together, so that its type is no variable.
                piece.push_str(&after[..colons]);
                rest = &after[colons..];
            }
        }
        pieces.last_mut().expect("there is always one").push_str(rest);
        if variables.len() > PLACES_MAX {
            return Err(format!("statement has too many arguments (maximum is {PLACES_MAX})"));
        }
        let statement =
            u16::try_from(self.statements.len()).map_err(|_| "too many statements: use up to 65536")?;
        let wanted = if keep.is_some() { Wanted::NamedRows } else { Wanted::Nothing };
        // pgbench, too, prepares a command when it is first run.
        let prepare = if sql.combined { Prepare::Never } else { Prepare::AtFirstUse };
        self.statements.push(Statement { pieces, prepare, wanted });
        Ok(Op::Run { statement: StatementId(statement), variables: variables.into(), keep })
    }

    fn can_be_set(&mut self, name: &str) -> bool {
        let id = self.names.intern(name);
        self.settable.ids.contains(&id)
            || self.settable.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }
}

/// Tells a jump or a condition where to go on.
fn go_on(op: &mut Op, at: usize) {
    if let Op::Unless(_, to) | Op::Jump(to) = op {
        *to = at;
    }
}
