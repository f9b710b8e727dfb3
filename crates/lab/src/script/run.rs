//! A client that runs a program.

use std::sync::Arc;
use std::time::Duration;

use crate::client::random::Repeatable;
use crate::client::{Client, Params, Random, Reply, Step, Turn};

use super::command::Op;
use super::expression::Context;
use super::program::Program;
use super::value::Value;
use super::variables::{Variables, is_name};

/// A client of a program: its variables, its random numbers, and its position.
#[derive(Debug)]
pub struct ScriptClient {
    program: Arc<Program>,
    variables: Variables,
    /// The variables at the transaction's beginning.
    saved: Variables,
    random: Repeatable,
    script: usize,
    at: usize,
    state: State,
    /// Buffer for building a text.
    scratch: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A new transaction begins.
    Fresh,
    /// The last one begins again.
    Again,
    Running,
}

impl ScriptClient {
    /// Client number `index` of a program.
    pub fn new(program: Arc<Program>, index: usize) -> Self {
        let mut variables = program.initial.clone();
        variables.set(program.client_id, Value::Int(index as i64));
        Self {
            saved: variables.clone(),
            program,
            variables,
            random: Repeatable::default(),
            script: 0,
            at: 0,
            state: State::Fresh,
            scratch: String::new(),
        }
    }

    /// A variable's value now.
    #[cfg(test)]
    pub(super) fn value(&self, name: &str) -> Value {
        let id = self.program.names.get(name).expect("a script mentions it");
        self.variables.value(id, &self.program.names).expect("it has a value")
    }

    /// Chooses a script, or goes back to the beginning of the last one.
    fn begin(&mut self, thread: &mut Random) {
        let again = self.state == State::Again;
        let (random, scripts) = (self.random.begin(thread, again), &self.program.scripts);
        self.script = 0;
        if scripts.len() > 1 {
            let mut drawn = random.between(0, self.program.weight - 1);
            while drawn >= scripts[self.script].weight {
                drawn -= scripts[self.script].weight;
                self.script += 1;
            }
        }
        match again {
            true => self.variables.copy(&self.saved),
            false => self.saved.copy(&self.variables),
        }
        (self.at, self.state) = (0, State::Running);
    }

    /// Runs the next op; returns a step if the driver must act.
    fn step(&mut self, params: &mut Params) -> Result<Option<Step>, String> {
        let Self { program, variables, random, script, .. } = self;
        let Some(op) = program.scripts[*script].ops.get(self.at) else {
            self.state = State::Fresh;
            return Ok(Some(Step::Done(*script as u8)));
        };
        self.at += 1;
        let mut context = Context { names: &program.names, variables, random: random.get() };
        match op {
            Op::Set(id, expression) => {
                let value = expression.evaluate(&mut context)?;
                variables.set(*id, value);
            }
            Op::Unless(condition, to) => {
                if !condition.evaluate(&mut context)?.truth() {
                    self.at = *to;
                }
            }
            Op::Jump(to) => self.at = *to,
            Op::Run { statement, .. } => {
                for id in &program.params[usize::from(statement.0)] {
                    variables.bind(*id, &program.names, params)?;
                }
                return Ok(Some(Step::Run(*statement)));
            }
            Op::Sleep(units, unit) => {
                // A negative time counts as zero.
                let units = u64::try_from(units.evaluate(&mut context)?.int()?).unwrap_or(0);
                let time = Duration::from_micros(units.saturating_mul(u64::from(*unit)));
                return Ok(Some(Step::Sleep(time)));
            }
        }
        Ok(None)
    }

    /// Keeps the row of the last op's reply, if the script wants it; a NULL becomes an empty text,
    /// as in pgbench.
    fn keep(&mut self, reply: &Reply) -> Result<(), String> {
        let Self { program, scratch, .. } = self;
        let last = self.at.checked_sub(1).and_then(|op| program.scripts[self.script].ops.get(op));
        let Some(Op::Run { keep: Some(prefix), .. }) = last else { return Ok(()) };
        if reply.rows() != 1 {
            return Err(format!("\\gset: expected one row, got {}", reply.rows()));
        }
        for column in 0..reply.columns() {
            scratch.clear();
            scratch.push_str(prefix);
            scratch.push_str(reply.column_name(column).unwrap_or_default());
            match program.names.get(scratch) {
                Some(id) => self.variables.set_text(id, reply.text(0, column).unwrap_or_default()),
                // No script reads it, but pgbench refuses its name.
                None if !is_name(scratch) => return Err(format!("invalid variable name: \"{scratch}\"")),
                None => {}
            }
        }
        Ok(())
    }

    /// The next step that the driver must do.
    fn run(&mut self, turn: Turn<'_>) -> Result<Step, String> {
        match self.state {
            State::Fresh | State::Again => self.begin(turn.random),
            State::Running => self.keep(turn.reply)?,
        }
        loop {
            if let Some(step) = self.step(turn.params)? {
                return Ok(step);
            }
        }
    }
}

impl Client for ScriptClient {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        self.run(turn).unwrap_or_else(|message| {
            let line = self.program.scripts[self.script].lines[self.at - 1];
            Step::Abort(format!("{}:{line}: {message}", self.program.kinds()[self.script]).into())
        })
    }

    fn failed(&mut self, again: bool) -> u8 {
        self.state = if again { State::Again } else { State::Fresh };
        self.script as u8
    }
}
