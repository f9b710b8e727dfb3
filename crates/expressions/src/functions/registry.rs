//! The lists of all functions and operators, and their lookup by name.

use runtime::hash::HashMap;
use sync::LazyLock;

use super::{
    advisory, arrays, catalog, datetimes, json, maths, numbers, operators, patterns, regexes, strings, system,
};
use crate::function::Function;

#[cfg(test)]
mod tests;

/// All functions by name, and all operators by operator.
struct Registry {
    functions: HashMap<&'static str, Vec<&'static Function>>,
    operators: HashMap<&'static str, Vec<&'static Function>>,
}

/// The first of our own OIDs, for functions that catalog queries mention. They never meet
/// PostgreSQL's OIDs.
const FIRST_OID: u32 = 9000;

static LISTS: [&[Function]; 12] = [
    arrays::FUNCTIONS,
    catalog::FUNCTIONS,
    datetimes::FUNCTIONS,
    datetimes::made::FUNCTIONS,
    maths::FUNCTIONS,
    numbers::FUNCTIONS,
    patterns::FUNCTIONS,
    regexes::FUNCTIONS,
    strings::FUNCTIONS,
    system::FUNCTIONS,
    json::FUNCTIONS,
    advisory::FUNCTIONS,
];

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = Registry { functions: HashMap::default(), operators: HashMap::default() };
    let integers = numbers::INTEGERS.iter().flatten();
    for function in LISTS.iter().copied().flatten().chain(integers).chain(operators::COMPARISONS.iter()) {
        if function.operator.is_empty() {
            registry.functions.entry(function.name).or_default().push(function);
        } else {
            registry.operators.entry(function.operator).or_default().push(function);
        }
    }
    registry
});

/// The functions with a name.
pub(super) fn functions(name: &str) -> &'static [&'static Function] {
    REGISTRY.functions.get(name).map_or(&[], Vec::as_slice)
}

/// The functions of an operator with this number of sides.
pub(super) fn operators(name: &str, sides: usize) -> Vec<&'static Function> {
    let all = REGISTRY.operators.get(name).map_or(&[][..], Vec::as_slice);
    all.iter().copied().filter(|function| function.arguments.len() == sides).collect()
}

/// PostgreSQL's OID of the input function of arrays, by which drivers recognise arrays.
pub const ARRAY_IN: u32 = 750;

/// The name of the function with this OID.
pub fn name_by_oid(oid: u32) -> Option<&'static str> {
    if oid == ARRAY_IN {
        return Some("array_in");
    }
    let index = oid.checked_sub(FIRST_OID)? as usize;
    LISTS.iter().copied().flatten().nth(index).map(|function| function.name)
}

/// The OID of the function of this name.
pub fn oid_by_name(name: &str) -> Option<u32> {
    if name == "array_in" {
        return Some(ARRAY_IN);
    }
    let index = LISTS.iter().copied().flatten().position(|function| function.name == name)?;
    Some(FIRST_OID + index as u32)
}
