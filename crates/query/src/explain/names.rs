//! Readable names for the contents of a plan's registers: the column or the expression that fills
//! each.

use runtime::hash::HashMap;

use super::{Result, SHOWING};
use crate::plan::walk::children;
use crate::plan::{Operator, Plan, Reg, Scan, SubqueryKind, WindowCall};
use expressions::expr::{Expr, Show};
use expressions::function::WindowFunction;
use values::environment::Environment;
use values::identifier::quoted;
use values::work;

/// The names of all registers that a plan's nodes fill. With more than one table, columns are
/// qualified.
pub(super) fn names(root: &Plan, session: &dyn Environment) -> Result<HashMap<u32, String>> {
    let mut names = HashMap::default();
    let several = tables(root) > 1;
    let mut counts = Counts::default();
    collect(root, several, session, &mut counts, &mut names)?;
    Ok(names)
}

/// The columns that a scan reads, by register.
pub(super) fn own(scan: &Scan) -> impl Iterator<Item = (Reg, String)> {
    scan.columns.iter().map(|read| (read.register, quoted(&scan.table.columns[read.column as usize].name)))
}

/// The direct inputs of a node.
fn inputs(plan: &Plan) -> Vec<&Plan> {
    let mut found = Vec::new();
    children(plan, &mut |input| found.push(input));
    found
}

fn tables(plan: &Plan) -> usize {
    let own = usize::from(matches!(plan.operator, Operator::Scan(_) | Operator::Virtual { .. }));
    own + inputs(plan).into_iter().map(tables).sum::<usize>()
}

/// The nodes numbered so far.
#[derive(Default)]
struct Counts {
    subqueries: u32,
    windows: u32,
}

/// Visits inputs first, since a node's expressions show the names of the registers they read.
fn collect(
    plan: &Plan,
    several: bool,
    session: &dyn Environment,
    counts: &mut Counts,
    names: &mut HashMap<u32, String>,
) -> Result<()> {
    work::tick(SHOWING)?;
    for input in inputs(plan) {
        collect(input, several, session, counts, names)?;
    }
    match &plan.operator {
        Operator::Scan(scan) => {
            let table = quoted(&scan.table.name);
            names.extend(own(scan).map(|(register, column)| {
                (register, if several { format!("{table}.{column}") } else { column })
            }));
        }
        Operator::Project { expressions, .. } => computed(expressions, session, names)?,
        Operator::Aggregate { groups, calls, .. } => {
            computed(groups, session, names)?;
            for call in calls {
                let arguments = match call.arguments.as_slice() {
                    [] => "*".to_owned(),
                    arguments => Show::new(names, &[], session).list(arguments, ", "),
                };
                let distinct = if call.distinct { "DISTINCT " } else { "" };
                names.insert(call.output, format!("{}({distinct}{arguments})", call.function.kind.name()));
            }
        }
        Operator::Subquery { kind, output, .. } => {
            counts.subqueries += 1;
            let exists = if matches!(kind, SubqueryKind::Exists | SubqueryKind::Matches { .. }) {
                "EXISTS"
            } else {
                ""
            };
            names.insert(*output, format!("{exists}(SubPlan {})", counts.subqueries));
        }
        Operator::SetOperation { first, output, .. } => {
            for (left, register) in first.1.iter().zip(output) {
                let shown = Show::new(names, &[], session).name(*left);
                names.insert(*register, shown);
            }
        }
        Operator::Window { calls, .. } => {
            counts.windows += 1;
            windowed(calls, counts.windows, session, names)?;
        }
        Operator::Function { calls, .. } => {
            for call in calls {
                let name = format!("{:?}", call.function).to_lowercase();
                names.extend(call.output.iter().map(|register| (*register, name.clone())));
            }
        }
        Operator::Values { output, .. } => {
            for (at, register) in output.iter().enumerate() {
                names.insert(*register, format!("column{}", at + 1));
            }
        }
        Operator::CommonScan { output, .. } => {
            for (at, register) in output.iter().enumerate() {
                names.extend(register.map(|register| (register, format!("column{}", at + 1))));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Longest text that becomes a name, in bytes. A longer one stays a number, since expressions over
/// expressions would double it at each level.
const LONGEST: usize = 500;

/// Names registers by the expressions that fill them.
fn computed(
    expressions: &[(Expr, Reg)],
    session: &dyn Environment,
    names: &mut HashMap<u32, String>,
) -> Result<()> {
    for (expr, register) in expressions {
        let shown = Show::new(names, &[], session).text(expr);
        work::tick(shown.len())?;
        if shown.len() <= LONGEST {
            names.insert(*register, shown);
        }
    }
    Ok(())
}

/// Names the results of a window's functions.
fn windowed(
    calls: &[WindowCall],
    window: u32,
    session: &dyn Environment,
    names: &mut HashMap<u32, String>,
) -> Result<()> {
    for call in calls {
        let function = call.function.name();
        let arguments = match (&call.function, call.arguments.as_slice()) {
            (WindowFunction::Aggregate(_), []) => "*".to_owned(),
            (_, arguments) => Show::new(names, &[], session).list(arguments, ", "),
        };
        let shown = format!("{function}({arguments}) OVER w{window}");
        work::tick(shown.len())?;
        if shown.len() <= LONGEST {
            names.insert(call.output, shown);
        }
    }
    Ok(())
}
