//! WITH queries that are NOT MATERIALIZED, in place of each of their readers.
//!
//! What must hold:
//!
//! 1. Each reader has a copy that fills registers of its own, from sources and WITH queries of its
//!    own. Registers of the queries around it stay.
//! 2. A chain of such queries that each read the former twice has twice as many copies with each
//!    link. Beyond [`COPIES`] the rest are computed once.

use super::inline::renamed;
use super::pushdown::WRAPPED;
use super::stable::is_stable;
use crate::bind::{Binder, SourceRegisters, alike};
use crate::bound::walk::{self, Part};
use crate::bound::{Bound, CommonQuery, Query, Source, SourceId};
use crate::plan::{Reg, RowIdentity};
use crate::registers::Registers;
use runtime::hash::{HashMap, HashSet};

/// The most copies in a statement.
const COPIES: usize = 100;

/// Copies them, those first that no other one reads.
pub(super) fn common_queries(bound: &mut Bound, binder: &mut Binder<'_>) {
    let (mut wanted, mut copies) = (Vec::new(), 0);
    walk::statement(bound, &mut |part| {
        let Part::With(tables) = part else { return };
        wanted.extend(tables.iter().filter(|table| table.inlined).map(|table| table.id));
    });
    while let Some(id) = wanted.pop() {
        let readers = readers(bound, id);
        // One reader takes the query itself.
        if readers < 2 || copies + readers > COPIES {
            continue;
        }
        copies += readers;
        let Some(mut query) = taken(bound, id) else { continue };
        let around = filled(bound, binder);
        let mut place = |part: Part<'_>| {
            let Part::Source(source, of) = part else { return };
            if matches!(of, Source::Common(common) if *common == id) {
                copy(&mut query, &around, binder);
                let columns = &binder.sources[*source].columns;
                *of = Source::Query(Box::new(renamed(query.clone(), columns)));
            }
        };
        walk::statement(bound, &mut place);
    }
}

fn readers(bound: &mut Bound, id: u32) -> usize {
    let mut count = 0;
    walk::statement(bound, &mut |part| {
        count += usize::from(matches!(part, Part::Source(_, Source::Common(common)) if *common == id));
    });
    count
}

/// Takes a WITH query out of its clause, if it may run in several places.
fn taken(bound: &mut Bound, id: u32) -> Option<Query> {
    let mut taken = None;
    walk::statement(bound, &mut |part| {
        let Part::With(tables) = part else { return };
        let is_it = |table: &mut CommonQuery| {
            table.id == id && table.recursive.is_none() && is_stable(&mut table.query)
        };
        taken = taken.take().or_else(|| tables.extract_if(.., is_it).next().map(|table| table.query));
    });
    taken
}

/// The registers that a statement fills.
fn filled(bound: &mut Bound, binder: &Binder<'_>) -> Registers {
    let mut filled = Registers::default();
    walk::statement(bound, &mut |part| match part {
        Part::Register(register) => filled.extend([*register]),
        Part::Source(id, _) if *id != WRAPPED => {
            filled.extend(binder.sources[*id].columns.iter().flatten());
        }
        _ => {}
    });
    filled
}

/// Gives a query registers, sources and WITH queries of its own. `around`: registers that it does
/// not fill.
fn copy(query: &mut Query, around: &Registers, binder: &mut Binder<'_>) {
    let mut registers: HashMap<Reg, Reg> = HashMap::default();
    let mut sources: HashMap<SourceId, SourceId> = HashMap::default();
    let mut tables: HashMap<u32, u32> = HashMap::default();
    let mut own: HashSet<u32> = HashSet::default();
    let mut renew = |register: Reg, binder: &mut Binder<'_>| match around.contains(&register) {
        true => register,
        false => *registers.entry(register).or_insert_with(|| binder.register()),
    };
    walk::query(query, &mut |part| match part {
        Part::Register(register) => {
            renew(*register, binder);
        }
        Part::Source(id, _) if *id != WRAPPED => {
            let SourceRegisters { columns, identity } = &binder.sources[*id];
            let (columns, identity) = (columns.clone(), *identity);
            let columns = columns.into_iter().map(|column| Some(renew(column?, binder))).collect();
            let identity = identity.map(|RowIdentity { key, stamp, row }| RowIdentity {
                key: renew(key, binder),
                stamp: renew(stamp, binder),
                row: renew(row, binder),
            });
            sources.insert(*id, binder.sources.len());
            binder.sources.push(SourceRegisters { columns, identity });
        }
        Part::With(with) => own.extend(with.iter().map(|table| table.id)),
        _ => {}
    });
    for id in own {
        tables.insert(id, binder.common_number());
    }
    alike::renumber(&mut |visit| walk::query(query, visit), (&registers, &sources, &tables));
}
