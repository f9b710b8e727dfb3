//! A client that runs a program.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::client::{Client, Params, Random, Reply, Step, Turn};

use super::expression::Context;
use super::op::{Amount, Keep, Op, Place};
use super::program::Program;
use super::value::Value;
use super::variables::{Names, Variable, VariableId, Variables, Written, find, is_name};

/// A client of a program: its variables, its random numbers, and its position.
#[derive(Debug)]
pub struct ScriptClient {
    program: Arc<Program>,
    variables: Variables,
    /// The client's own generator, so that a repeated transaction draws the same; the first step
    /// forks it from the thread's.
    random: Option<Random>,
    /// State at the transaction's beginning: the variables that its script may set, and the random
    /// numbers.
    saved_variables: Vec<Variable>,
    saved_random: Option<Random>,
    script: usize,
    /// The next op.
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
    /// Under way.
    Running,
    /// Under way; the client must keep the last op's reply.
    Replied,
}

impl ScriptClient {
    /// Client number `index` of a program.
    pub fn new(program: Arc<Program>, index: usize) -> Self {
        let mut variables = program.initial.clone();
        variables.set(program.client_id, Value::Int(index as i64));
        Self {
            program,
            variables,
            random: None,
            saved_variables: Vec::new(),
            saved_random: None,
            script: 0,
            at: 0,
            state: State::Fresh,
            scratch: String::new(),
        }
    }

    /// A variable's value now.
    #[cfg(test)]
    pub(super) fn value(&self, name: &str) -> Value {
        let id = find(&self.program.sorted, "", name).expect("a script mentions it");
        self.variables.value(id, &self.program.names).expect("it has a value")
    }

    /// Chooses a script, or goes back to the beginning of the last one.
    fn begin(&mut self, thread: &mut Random) {
        let random = self.random.get_or_insert_with(|| thread.fork());
        if self.state == State::Again {
            let assigned = &self.program.scripts[self.script].assigned;
            self.variables.restore(assigned, &self.saved_variables);
            self.random.clone_from(&self.saved_random);
        } else {
            let scripts = &self.program.scripts;
            self.script = 0;
            if scripts.len() > 1 {
                let mut drawn = random.between(0, self.program.weight - 1);
                while drawn >= scripts[self.script].weight {
                    drawn -= scripts[self.script].weight;
                    self.script += 1;
                }
            }
            self.variables.save(&scripts[self.script].assigned, &mut self.saved_variables);
            self.saved_random.clone_from(&self.random);
        }
        self.at = 0;
    }

    /// Ends the client with the error's place and message.
    fn abort(&self, op: usize, message: &str) -> Step {
        let Place { line, column } = self.program.scripts[self.script].places[op];
        Step::Abort(Cow::Owned(format!("{}:{line}:{column}: {message}", self.program.kinds()[self.script])))
    }

    /// Runs the op; returns a step if the driver must act.
    fn step(&mut self, op: usize, params: &mut Params) -> Result<Option<Step>, Cow<'static, str>> {
        let Self { program, variables, random, script, .. } = self;
        let random = random.as_mut().expect("a transaction has begun");
        let mut context = Context { names: &program.names, variables, random };
        match &program.scripts[*script].ops[op] {
            Op::Set(id, expression) => {
                let value = expression.evaluate(&mut context)?;
                variables.set(*id, value);
                Ok(None)
            }
            Op::Unless(condition, to) => {
                if !condition.evaluate(&mut context)?.truth() {
                    self.at = *to;
                }
                Ok(None)
            }
            Op::Jump(to) => {
                self.at = *to;
                Ok(None)
            }
            Op::Run { statement, variables: places, keep } => {
                for id in places {
                    write_param(variables, &program.names, *id, params, &mut self.scratch);
                }
                if keep.is_some() {
                    self.state = State::Replied;
                }
                Ok(Some(Step::Run(*statement)))
            }
            Op::Sleep(amount, unit) => {
                let units = match amount {
                    Amount::Constant(units) => *units,
                    Amount::Variable(id) => sleep_units(variables, &program.names, *id, &mut self.scratch)?,
                };
                // A negative time counts as zero.
                Ok(Some(Step::Sleep(Duration::from_micros(
                    u64::try_from(units).unwrap_or(0).saturating_mul(u64::from(*unit)),
                ))))
            }
        }
    }

    /// Keeps the row of the op's reply; a NULL becomes an empty text, as in pgbench.
    fn keep(&mut self, op: usize, reply: &Reply) -> Result<(), String> {
        let program = &self.program;
        let Op::Run { keep: Some(Keep(prefix)), .. } = &program.scripts[self.script].ops[op] else {
            return Ok(());
        };
        if reply.rows() != 1 {
            return Err(format!("\\gset: expected one row, got {}", reply.rows()));
        }
        for column in 0..reply.columns() {
            let name = reply.column_name(column).unwrap_or_default();
            match find(&program.sorted, prefix, name) {
                Some(id) => self.variables.set_text(id, reply.text(0, column).unwrap_or_default()),
                // No script reads it, but pgbench refuses its name.
                None if !is_name(prefix.bytes().chain(name.bytes())) => {
                    return Err(format!("invalid variable name: \"{prefix}{name}\""));
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn write_param(
    variables: &Variables,
    names: &Names,
    id: VariableId,
    params: &mut Params,
    scratch: &mut String,
) {
    scratch.clear();
    match variables.written(id) {
        Written::Value(Value::Null) => params.null(),
        Written::Value(Value::Int(value)) => params.int(value),
        Written::Value(value) => {
            value.write(scratch);
            params.verbatim(scratch);
        }
        Written::Text(text) => params.verbatim(text),
        // An unset variable stays verbatim in a text.
        Written::Unset => {
            scratch.push(':');
            scratch.push_str(names.name(id));
            params.unset(scratch);
        }
    }
}

/// The number at the beginning of a variable's text.
fn sleep_units(
    variables: &Variables,
    names: &Names,
    id: VariableId,
    scratch: &mut String,
) -> Result<i64, String> {
    let name = names.name(id);
    scratch.clear();
    match variables.written(id) {
        Written::Unset => return Err(format!("\\sleep: undefined variable \"{name}\"")),
        Written::Value(value) => value.write(scratch),
        Written::Text(text) => scratch.push_str(text),
    }
    let sign = usize::from(scratch.starts_with(['-', '+']));
    let digits = scratch[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let number = scratch[..sign + digits].parse();
    number.map_err(|_| format!("\\sleep: invalid sleep time \"{scratch}\" for variable \"{name}\""))
}

impl Client for ScriptClient {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        match self.state {
            State::Fresh | State::Again => self.begin(turn.random),
            State::Replied => {
                if let Err(message) = self.keep(self.at - 1, turn.reply) {
                    return self.abort(self.at - 1, &message);
                }
            }
            State::Running => {}
        }
        self.state = State::Running;
        while self.at < self.program.scripts[self.script].ops.len() {
            let op = self.at;
            self.at += 1;
            match self.step(op, turn.params) {
                Ok(None) => {}
                Ok(Some(step)) => return step,
                Err(message) => return self.abort(op, &message),
            }
        }
        self.state = State::Fresh;
        Step::Done(self.script as u8)
    }

    fn failed(&mut self, again: bool) -> u8 {
        self.state = if again { State::Again } else { State::Fresh };
        self.script as u8
    }
}
