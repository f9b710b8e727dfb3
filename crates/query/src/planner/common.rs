//! WITH: which plans read which common table.
//!
//! A table that no plan reads is dropped and does not run. That is correct for any table here,
//! since WITH contains only queries; a statement that changes data would have to stay.

use runtime::hash::{HashMap, HashSet};

use super::Planner;
use super::keep::free;
use crate::bound::CommonQuery;
use crate::plan::walk::children;
use crate::plan::{CommonTable, Estimate, Operator, Plan, RecursiveTerm, Reg, SecondLook};
use crate::registers::Registers;
use values::error::SqlError;

/// The WITH queries planned so far.
#[derive(Default)]
pub(super) struct Known {
    /// The number of columns of each.
    widths: HashMap<u32, usize>,
    /// Recursive tables and tables that read one. Their rows may have no end.
    endless: HashSet<u32>,
    /// Tables whose recursive terms are being planned.
    working: Vec<u32>,
    /// For each table, the registers of surrounding queries that it reads.
    around: HashMap<u32, Vec<Reg>>,
}

impl Planner<'_, '_> {
    /// The scan of a WITH query. `columns`: the register of each column that is read.
    pub(super) fn common_scan(&self, id: u32, mut columns: Vec<Option<Reg>>) -> Operator {
        let width = self.common.widths.get(&id).copied().unwrap_or(0);
        columns.resize(width.max(columns.len()), None);
        Operator::CommonScan { id, output: columns, working: self.common.working.contains(&id) }
    }

    /// Whether a plan may read a recursion without end. A join that keeps the other side's rows
    /// reads it only as far as rows are asked for.
    pub(super) fn may_be_endless(&self, plan: &Plan) -> bool {
        match &plan.operator {
            Operator::CommonScan { id, .. } => self.common.endless.contains(id),
            _ => {
                let mut found = false;
                children(plan, &mut |child| found |= self.may_be_endless(child));
                found
            }
        }
    }

    pub(super) fn common_tables(
        &mut self,
        tables: Vec<CommonQuery>,
        outside: &Registers,
    ) -> Result<Vec<CommonTable>, SqlError> {
        let mut planned = Vec::with_capacity(tables.len());
        for table in tables {
            self.common.widths.insert(table.id, table.query.output.len());
            let registers: Vec<Reg> = table.query.output.iter().map(|column| column.register).collect();
            let plan = self.query(table.query, outside)?.plan;
            let recursive = match table.recursive {
                None => None,
                Some((term, all)) => {
                    let registers = term.output.iter().map(|column| column.register).collect();
                    self.common.working.push(table.id);
                    let plan = self.query(term, outside)?.plan;
                    self.common.working.pop();
                    Some(RecursiveTerm { plan, registers, all })
                }
            };
            if recursive.is_some() || self.may_be_endless(&plan) {
                self.common.endless.insert(table.id);
            }
            let around = self.common.around_terms(&plan, &registers, recursive.as_ref());
            self.common.around.insert(table.id, around.clone());
            let single = false;
            let (id, name) = (table.id, table.name);
            planned.push(CommonTable { id, name, plan, registers, recursive, single, around });
        }
        Ok(planned)
    }
}

impl Known {
    /// The registers of surrounding queries that a table's terms read, or that the tables they scan
    /// read. The rows of those tables are computed from the registers that this table's producer
    /// knows.
    fn around_terms(&self, plan: &Plan, registers: &[Reg], recursive: Option<&RecursiveTerm>) -> Vec<Reg> {
        let mut read = Registers::default();
        let terms = recursive.iter().map(|term| (&term.plan, term.registers.as_slice()));
        for (plan, registers) in terms.chain([(plan, registers)]) {
            let mut terms_read = free(plan);
            self.scanned(plan, &mut terms_read);
            // A column may be an unchanged register of a surrounding query.
            terms_read.extend(registers);
            let mut own = Registers::default();
            all_written(plan, &mut own);
            read.extend(terms_read.iter().filter(|register| !own.contains(register)));
        }
        let mut around: Vec<Reg> = read.into_iter().collect();
        around.sort_unstable();
        around
    }

    /// Adds the registers of surrounding queries that the tables scanned in a plan read.
    fn scanned(&self, plan: &Plan, read: &mut Registers) {
        if let Operator::CommonScan { id, .. } = &plan.operator {
            read.extend(self.around.get(id).into_iter().flatten());
        }
        children(plan, &mut |child| self.scanned(child, read));
    }
}

/// Adds all registers that a plan and its subplans write.
fn all_written(plan: &Plan, own: &mut Registers) {
    super::written::add_own(plan, own);
    children(plan, &mut |child| all_written(child, own));
}

/// A body with the tables that it reads, directly or through other tables.
pub(super) fn with_tables(mut tables: Vec<CommonTable>, body: Plan) -> Plan {
    // Iterates backwards. A table reads only earlier ones, so all remaining readers of a table are
    // known when the loop reaches it.
    for at in (0..tables.len()).rev() {
        let id = tables[at].id;
        let count =
            readers(&body, id, 1) + tables.iter().map(|table| table_readers(table, id, 1)).sum::<u32>();
        match count {
            0 => drop(tables.remove(at)),
            count => tables[at].single = count == 1,
        }
    }
    if tables.is_empty() {
        return body;
    }
    let estimate = with_estimate(&tables, body.estimate);
    Plan::new(Operator::With { tables, body: Box::new(body) }, estimate)
}

/// The body's estimate and the work of the tables.
fn with_estimate(tables: &[CommonTable], body: Estimate) -> Estimate {
    let work = |table: &CommonTable| {
        let recursive = table.recursive.as_ref().map_or(0.0, |term| term.plan.estimate.cost);
        table.plan.estimate.cost + recursive
    };
    Estimate { cost: body.cost + tables.iter().map(work).sum::<f64>(), ..body }
}

/// The number of scans of a table. A scan counts `weight`, or 2 if it may run again.
fn readers(plan: &Plan, id: u32, weight: u32) -> u32 {
    let mut count = 0;
    match &plan.operator {
        Operator::CommonScan { id: scanned, working, .. } => {
            return if *scanned == id && !working { weight } else { 0 };
        }
        Operator::NestedLoop { left, right, beyond, .. } => {
            let hashed: u32 = beyond.iter().map(|beyond| readers(&beyond.join, id, 2)).sum();
            return readers(left, id, weight) + readers(right, id, 2) + hashed;
        }
        Operator::EquiJoin { left, right, test, .. } => {
            let of_pairs: u32 = test.iter().map(|test| readers(test, id, 2)).sum();
            return readers(left, id, weight) + readers(right, id, weight) + of_pairs;
        }
        Operator::Subquery { input, subquery, .. } => {
            return readers(input, id, weight) + readers(subquery, id, 2);
        }
        Operator::With { tables, body } => {
            return readers(body, id, weight)
                + tables.iter().map(|table| table_readers(table, id, weight)).sum::<u32>();
        }
        Operator::LockRows { second_look, .. } => count += second_look_readers(second_look.as_deref(), id),
        Operator::Update(update) => count += second_look_readers(update.second_look.as_deref(), id),
        Operator::Delete(delete) => count += second_look_readers(delete.second_look.as_deref(), id),
        _ => {}
    }
    children(plan, &mut |child| count += readers(child, id, weight));
    count
}

/// Another table's recursive term runs more than once.
fn table_readers(table: &CommonTable, id: u32, weight: u32) -> u32 {
    readers(&table.plan, id, weight) + table.recursive.as_ref().map_or(0, |term| readers(&term.plan, id, 2))
}

/// The plan of a second look runs beside the rest of the statement.
fn second_look_readers(second_look: Option<&SecondLook>, id: u32) -> u32 {
    let Some(second_look) = second_look else { return 0 };
    let matches =
        second_look.matches.iter().flat_map(|part| std::iter::once(&part.subquery).chain(&part.plan));
    matches.chain(&second_look.plan).map(|plan| readers(plan, id, 2)).sum()
}
