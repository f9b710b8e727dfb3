//! Combines the scripts of a mix: numbers variables, cuts SQL at its variables. The result never
//! changes, and all clients share it.

use std::collections::BTreeSet;

use crate::client::{Prepare, Statement, StatementId, Wanted};

use super::command::{Op, Reading, Script};
use super::source::{Source, line};
use super::value::Value;
use super::variables::{Names, VariableId, Variables, begins_name, continues_name, is_name};

/// Most scripts of a mix, as in pgbench.
const SCRIPTS_MAX: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Variables of the command line, and their texts.
    pub defines: Vec<(String, String)>,
    pub scale: i64,
    pub seed: u64,
}

impl Settings {
    /// Adds a variable from `name=value`. It refuses `scale`: pgbench takes it without changing the
    /// tables, and then draws keys that these lack.
    pub fn define(&mut self, option: &str) -> Result<(), String> {
        match option.split_once('=') {
            Some(("scale", value)) => Err(format!(
                "-D {option} would change :scale and not the tables: take --scale {value}, which is both"
            )),
            Some((name, value)) if !value.is_empty() && is_name(name) => {
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
    /// A client's initial variables, without `client_id`.
    pub(super) initial: Variables,
    pub(super) client_id: VariableId,
    pub(super) weight: i64,
    /// Each statement's parameters, in order.
    pub(super) params: Vec<Vec<VariableId>>,
    statements: Vec<Statement>,
    /// Each statement's script and line.
    places: Vec<(usize, usize)>,
    kinds: Vec<String>,
}

impl Program {
    /// Combines the scripts. The error shows the place.
    pub fn new(sources: &[Source], settings: &Settings) -> Result<Self, String> {
        if sources.is_empty() || sources.len() > SCRIPTS_MAX {
            return Err(format!("{} scripts given: use 1 to {SCRIPTS_MAX}", sources.len()));
        }
        let weight = sources.iter().map(|source| i64::from(source.weight)).sum();
        if weight == 0 {
            return Err("all scripts have weight 0: nothing would run".into());
        }
        let mut mix = Reading::default();
        let automatic = ["client_id", "random_seed", "scale"].map(|name| mix.names.intern(name));
        for source in sources {
            mix.read(source)?;
        }
        let Reading { scripts, mut names, statements: texts } = mix;
        let mut settable = Settable { ids: automatic.into(), prefixes: Vec::new() };
        settable.ids.extend(settings.defines.iter().map(|(name, _)| names.intern(name)));
        let mut kept = BTreeSet::new();
        for op in scripts.iter().flat_map(|script| &script.ops) {
            match op {
                Op::Set(id, _) => _ = settable.ids.insert(*id),
                Op::Run { statement, keep: Some(prefix) } => {
                    settable.prefixes.push(prefix.clone());
                    kept.insert(usize::from(statement.0));
                }
                _ => {}
            }
        }
        let (mut statements, mut params, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (number, sql) in texts.into_iter().enumerate() {
            let source = &sources[sql.script];
            let (pieces, variables) = settable.cut(&sql.text, &mut names);
            let wanted = if kept.contains(&number) { Wanted::NamedRows } else { Wanted::Nothing };
            statements.push(Statement { pieces, prepare: Prepare::AtConnect, wanted });
            params.push(variables);
            places.push((sql.script, line(&source.text, sql.start).1));
        }
        let mut initial = names.variables();
        let [client_id, random_seed, scale] = automatic;
        initial.set(random_seed, Value::Int(settings.seed as i64));
        initial.set(scale, Value::Int(settings.scale));
        for (name, text) in &settings.defines {
            initial.set_text(names.intern(name), text);
        }
        let kinds = sources.iter().map(|source| source.name.clone()).collect();
        Ok(Self { scripts, names, initial, client_id, weight, params, statements, places, kinds })
    }

    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// Whether each script can go as one pipeline: no command needs an answer before its end, and
    /// it has several statements. The error names the place and the reason.
    pub fn pipelines(&self) -> Result<(), String> {
        for (statement, (script, line)) in self.statements.iter().zip(&self.places) {
            if statement.wanted != Wanted::Nothing {
                let kind = &self.kinds[*script];
                return Err(format!("{kind}:{line}: \\gset wants an answer before the next statement"));
            }
        }
        let statements = |script| self.places.iter().filter(|place| place.0 == script).count();
        match (0..self.scripts.len()).map(statements).max() {
            None | Some(0 | 1) => {
                Err(format!("a transaction of {} is a single statement", self.kinds.join("+")))
            }
            Some(_) => Ok(()),
        }
    }

    /// The script and the line of a statement.
    pub fn place(&self, statement: StatementId) -> (usize, usize) {
        self.places[usize::from(statement.0)]
    }

    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }
}

/// The names that can ever have a value.
struct Settable {
    ids: BTreeSet<VariableId>,
    prefixes: Vec<String>,
}

impl Settable {
    /// Cuts a command at its variables: its pieces, and the variables between them.
    fn cut(&self, text: &str, names: &mut Names) -> (Vec<String>, Vec<VariableId>) {
        let (mut pieces, mut variables) = (Vec::new(), Vec::new());
        let (mut piece, mut rest) = (String::new(), text);
        while let Some(colon) = rest.find(':') {
            let (before, after) = rest.split_at(colon);
            piece.push_str(before);
            let name = &after[1..];
            let length = name.bytes().take_while(|byte| continues_name(*byte)).count();
            if length > 0 && begins_name(name.as_bytes()[0]) && self.has(&name[..length], names) {
                variables.push(names.intern(&name[..length]));
                pieces.push(std::mem::take(&mut piece));
                rest = &name[length..];
            } else {
                // The scanner skips a cast's colons together, so that its type is no variable.
                let colons = after.bytes().take_while(|byte| *byte == b':').count();
                piece.push_str(&after[..colons]);
                rest = &after[colons..];
            }
        }
        piece.push_str(rest);
        pieces.push(piece);
        (pieces, variables)
    }

    fn has(&self, name: &str, names: &Names) -> bool {
        names.get(name).is_some_and(|id| self.ids.contains(&id))
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }
}
