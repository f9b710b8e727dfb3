//! Readable names for the contents of a plan's registers: the column or the expression that fills
//! each.

use runtime::hash::HashMap;

use super::node::Role;
use super::{Result, SHOWING};
use crate::plan::walk::children;
use crate::plan::{ColumnRead, Operator, Plan, Reg, Scan, SetCall, SubqueryKind, WindowCall};
use catalog::{Catalog, Table};
use expressions::expr::{Expr, Show};
use expressions::function::{SetFunction, WindowFunction};
use values::environment::Environment;
use values::identifier::quoted;
use values::work;

/// The names of a statement's parts.
#[derive(Default)]
pub(super) struct Names {
    /// The contents of each register.
    pub(super) registers: HashMap<u32, String>,
    /// The role of each subquery, by the register of its result.
    pub(super) links: HashMap<Reg, Role>,
    /// Each WITH query, by its number.
    pub(super) tables: HashMap<u32, String>,
    subqueries: u32,
    windows: u32,
}

/// The names of all registers that a plan's nodes fill, of its subqueries and of its WITH queries.
/// With more than one table, columns are qualified.
pub(super) fn names(root: &Plan, catalog: &Catalog, session: &dyn Environment) -> Result<Names> {
    let mut names = Names::default();
    collect(root, (tables(root) > 1, catalog), session, &mut names)?;
    Ok(names)
}

/// The columns that a scan reads, by register.
pub(super) fn own(scan: &Scan) -> impl Iterator<Item = (Reg, String)> {
    columns(&scan.table, &scan.columns, false)
}

/// The columns read of a table, by register.
fn columns<'t>(
    table: &'t Table,
    read: &'t [ColumnRead],
    qualified: bool,
) -> impl Iterator<Item = (Reg, String)> + use<'t> {
    read.iter().map(move |read| {
        let column = quoted(&table.columns[read.column as usize].name);
        let name = if qualified { format!("{}.{column}", quoted(&table.name)) } else { column };
        (read.register, name)
    })
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

/// Visits inputs first, since a node's expressions show the names of the registers they read.
fn collect(
    plan: &Plan,
    (several, catalog): (bool, &Catalog),
    session: &dyn Environment,
    known: &mut Names,
) -> Result<()> {
    work::tick(SHOWING)?;
    for input in inputs(plan) {
        collect(input, (several, catalog), session, known)?;
    }
    let names = &mut known.registers;
    match &plan.operator {
        Operator::Scan(scan) => {
            names.extend(columns(&scan.table, &scan.columns, several));
        }
        Operator::Virtual { relation, columns: read, .. } => {
            names.extend(catalog.table(*relation).iter().flat_map(|table| columns(table, read, several)));
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
        Operator::Subquery { kind, output, correlated, .. } => {
            known.subqueries += 1;
            let (name, role) = subquery(kind, *correlated, known.subqueries);
            names.insert(*output, name);
            known.links.insert(*output, role);
        }
        Operator::With { tables, .. } => {
            known.tables.extend(tables.iter().map(|table| (table.id, table.name.clone())));
        }
        Operator::SetOperation { first, output, .. } => {
            for (left, register) in first.1.iter().zip(output) {
                let shown = Show::new(names, &[], session).name(*left);
                names.insert(*register, shown);
            }
        }
        Operator::Window { calls, .. } => {
            known.windows += 1;
            windowed(calls, known.windows, session, names)?;
        }
        Operator::Function { calls, .. } => {
            for call in calls {
                let name = function(call);
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

/// The name of a subquery's result, and its role. One that reads no row around it runs once.
fn subquery(kind: &SubqueryKind, correlated: bool, number: u32) -> (String, Role) {
    let is_hashed =
        matches!(kind, SubqueryKind::Matches { .. } | SubqueryKind::Quantified { hash: Some(_), .. });
    let has_operand = is_hashed || matches!(kind, SubqueryKind::Quantified { .. });
    if !correlated && !has_operand {
        return (format!("(InitPlan {number}).col1"), Role::InitPlan(format!("InitPlan {number}")));
    }
    let name = match kind {
        SubqueryKind::Exists => format!("EXISTS(SubPlan {number})"),
        SubqueryKind::Array { .. } => format!("ARRAY(SubPlan {number})"),
        _ if is_hashed && !correlated => format!("(hashed SubPlan {number})"),
        _ => format!("(SubPlan {number})"),
    };
    (name, Role::SubPlan(format!("SubPlan {number}")))
}

/// The name of a set-returning function.
pub(super) fn function(call: &SetCall) -> String {
    let of_argument = || match call.arguments.first() {
        Some(Expr::Call(call)) => call.function.name,
        _ => "function",
    };
    match call.function {
        SetFunction::Unnest => "unnest".to_owned(),
        SetFunction::ArrayElements => of_argument().replace("_to_array", "_to_table"),
        SetFunction::Once => of_argument().to_owned(),
        _ => "generate_series".to_owned(),
    }
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
