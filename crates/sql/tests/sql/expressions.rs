//! Every expression of `expressions.txt` has the result that PostgreSQL 18 gave when the file was
//! recorded. That is the same text, or an error of the same SQLSTATE. There is no storage and no
//! session: the planner binds, and a few lines here stand for the executor.

use std::sync::Arc;

use bumpalo::Bump;
use catalog::{Catalog, DatabaseEntry};
use expressions::context::EvalContext;
use query::compile::compile_here;
use query::plan::{Body, Operator, Plan, Statement};
use query::request::{Context, Request};
use sql::{SqlError, Type};
use values::environment::Environment;
use values::text;
use values::types::{Datum, Settings};

struct TestSession(Settings);

impl Environment for TestSession {
    fn settings(&self) -> &Settings {
        &self.0
    }
    fn random(&self) -> u64 {
        42
    }
    fn function_oid(&self, name: &str) -> Option<u32> {
        expressions::functions::oid_by_name(name)
    }
    fn function_name(&self, oid: u32) -> Option<&'static str> {
        expressions::functions::name_by_oid(oid)
    }
}

/// Runs the plans of a SELECT without FROM.
fn run<'a>(
    plan: &'a Plan,
    registers: &mut Vec<Datum<'a>>,
    arena: &'a Bump,
    session: &TestSession,
) -> Result<(), SqlError> {
    match &plan.operator {
        Operator::OneRow => Ok(()),
        Operator::Project { input, expressions } => {
            run(input, registers, arena, session)?;
            for (expr, register) in expressions {
                let value = expr.eval(&mut EvalContext::new(registers, &[], arena, session))?;
                registers[*register as usize] = value;
            }
            Ok(())
        }
        Operator::Aggregate { input, calls, .. } => {
            run(input, registers, arena, session)?;
            for call in calls {
                let mut state = call.function.start();
                let mut arguments = Vec::new();
                for argument in &call.arguments {
                    arguments.push(argument.eval(&mut EvalContext::new(registers, &[], arena, session))?);
                }
                state.add(&arguments)?;
                registers[call.output as usize] = state.finish(arena)?;
            }
            Ok(())
        }
        other => Err(SqlError::internal(format!("the test has no such plan: {other:?}"))),
    }
}

fn answer(catalog: &Arc<Catalog>, session: &TestSession, expression: &str) -> String {
    let shown = || -> Result<String, SqlError> {
        let path = ["public".to_owned()];
        let context = Context { catalog, search_path: &path, sizes: None, methods: Default::default() };
        let text = format!("SELECT {expression}");
        let compiled = compile_here(&context, &Request::plain(&text))?
            .ok_or_else(|| SqlError::internal("nothing compiled"))?;
        let statement: &Statement = &compiled.statement;
        let Body::Query { root, .. } = &statement.body else { return Err(SqlError::internal("no query")) };
        let arena = Bump::new();
        let mut registers = vec![Datum::Null; statement.registers as usize];
        run(root, &mut registers, &arena, session)?;
        let value = registers[statement.output[0] as usize];
        let ty: Type = statement.columns[0].type_;
        let shown = text::to_bytes(value, ty, session)?;
        Ok(if value.is_null() { "\\N".to_owned() } else { String::from_utf8_lossy(&shown).into_owned() })
    };
    shown().unwrap_or_else(|error| format!("!{}", error.code))
}

#[test]
fn expressions_as_postgresql_evaluates_them() {
    let entry = DatabaseEntry { oid: 5, name: "postgres".to_owned() };
    let catalog = Arc::new(Catalog::new(entry, Arc::new([]), Arc::new([])));
    let session = TestSession(Settings::default());
    let mut wrong = Vec::new();
    let mut cases = 0;
    for line in include_str!("expressions.txt").lines().filter(|line| !line.starts_with('#')) {
        let Some((expression, expected)) = line.split_once('\t') else { continue };
        cases += 1;
        let found = answer(&catalog, &session, expression);
        if found != expected {
            wrong.push(format!("{expression}: {found} instead of {expected}"));
        }
    }
    assert!(cases > 400, "only {cases} cases");
    assert!(wrong.is_empty(), "{} of {cases} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
