//! PostgreSQL's overload resolution: chapter 10 of its manual, "Type Conversion".
//!
//! An exact match wins. Otherwise candidates that implicit casts cannot reach are dropped. Then
//! these steps follow while several are left:
//!
//! 1. keep the candidates with the most exact matches;
//! 2. keep those with the most matches that are exact or preferred;
//! 3. give each unknown argument the category the candidates agree on, string before all others;
//! 4. if all known arguments have one type, give the unknown ones this type too.

use super::casts::implicit_ok;
use crate::function::Function;
use values::types::{Type, oid, registry};

/// The result of a search.
pub(super) enum Choice {
    /// This function.
    One(&'static Function),
    /// No function fits.
    None,
    /// Several functions fit equally well.
    Many,
}

/// The declared type of an argument position.
pub(super) fn declared(function: &Function, position: usize) -> u32 {
    let last = function.arguments.len().saturating_sub(1);
    let declared = function.arguments.get(position.min(last)).copied().unwrap_or(oid::ANY);
    if function.variadic && position >= last {
        registry::element_of(declared).unwrap_or(declared)
    } else {
        declared
    }
}

fn is_open(ty: u32) -> bool {
    matches!(
        ty,
        oid::ANY
            | oid::ANYELEMENT
            | oid::ANYARRAY
            | oid::ANYNONARRAY
            | oid::ANYCOMPATIBLE
            | oid::ANYCOMPATIBLEARRAY
            | oid::ANYCOMPATIBLENONARRAY
    )
}

/// Whether a polymorphic position takes the type.
fn open_accepts(declared: u32, argument: u32) -> bool {
    match declared {
        oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY => {
            argument == oid::UNKNOWN
                || registry::element_of(argument).is_some_and(|_| registry::category(argument) == b'A')
        }
        oid::ANYNONARRAY | oid::ANYCOMPATIBLENONARRAY => !registry::is_array(argument),
        _ => true,
    }
}

fn accepts(declared: u32, argument: u32) -> bool {
    if is_open(declared) {
        open_accepts(declared, argument)
    } else {
        argument == oid::UNKNOWN || implicit_ok(argument, declared)
    }
}

/// Whether the arguments at polymorphic positions agree: on one element type for anyelement and
/// anyarray, on a common type for anycompatible and anycompatiblearray.
fn consistent(function: &Function, arguments: &[u32]) -> bool {
    let (mut element, mut compatible) = (None, Vec::new());
    for (position, argument) in
        arguments.iter().enumerate().filter(|(_, argument)| **argument != oid::UNKNOWN)
    {
        let own = match declared(function, position) {
            oid::ANYARRAY => registry::element_of(*argument),
            oid::ANYELEMENT | oid::ANYNONARRAY => Some(*argument),
            oid::ANYCOMPATIBLEARRAY => {
                compatible.extend(registry::element_of(*argument).map(Type::new));
                None
            }
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => {
                compatible.push(Type::new(*argument));
                None
            }
            _ => None,
        };
        if let Some(own) = own {
            if element.is_some_and(|element| element != own) {
                return false;
            }
            element = Some(own);
        }
    }
    compatible.len() < 2 || super::casts::common_type("function", &compatible).is_ok()
}

fn takes(function: &Function, count: usize) -> bool {
    if function.variadic { count >= function.arguments.len() } else { count == function.arguments.len() }
}

/// Chooses among the candidates. With `operator` and one unknown side, the other side's type is
/// tried first.
pub(super) fn choose(candidates: &[&'static Function], types: &[Type], operator: bool) -> Choice {
    let arguments: Vec<u32> = types.iter().map(|ty| ty.oid).collect();
    let fits: Vec<&'static Function> = candidates
        .iter()
        .copied()
        .filter(|function| takes(function, arguments.len()))
        .filter(|function| arguments.iter().enumerate().all(|(at, ty)| accepts(declared(function, at), *ty)))
        .filter(|function| consistent(function, &arguments))
        .collect();
    let exact = |arguments: &[u32]| {
        fits.iter().copied().find(|function| {
            arguments.iter().enumerate().all(|(at, ty)| declared(function, at) == *ty) && !function.variadic
        })
    };
    if let Some(function) = exact(&arguments) {
        return Choice::One(function);
    }
    if operator && arguments.len() == 2 {
        let assumed = match (arguments[0], arguments[1]) {
            (oid::UNKNOWN, other) | (other, oid::UNKNOWN) => vec![other; 2],
            _ => arguments.clone(),
        };
        if let Some(function) = exact(&assumed) {
            return Choice::One(function);
        }
    }
    narrow(fits, &arguments)
}

fn keep_best(fits: &mut Vec<&'static Function>, score: impl Fn(&Function) -> usize) {
    let best = fits.iter().map(|function| score(function)).max().unwrap_or(0);
    fits.retain(|function| score(function) == best);
}

fn narrow(mut fits: Vec<&'static Function>, arguments: &[u32]) -> Choice {
    let settled = |fits: &[&'static Function]| match fits {
        [] => Some(Choice::None),
        [one] => Some(Choice::One(one)),
        _ => None,
    };
    if let Some(choice) = settled(&fits) {
        return choice;
    }
    keep_best(&mut fits, |function| {
        arguments
            .iter()
            .enumerate()
            .filter(|(at, ty)| **ty != oid::UNKNOWN && declared(function, *at) == **ty)
            .count()
    });
    if let Some(choice) = settled(&fits) {
        return choice;
    }
    // Binary-coercible varchar counts as text from here on.
    let bases: Vec<u32> =
        arguments.iter().map(|ty| if *ty == oid::VARCHAR { oid::TEXT } else { *ty }).collect();
    keep_best(&mut fits, |function| {
        bases
            .iter()
            .enumerate()
            .filter(|(at, ty)| {
                let declared = declared(function, *at);
                **ty != oid::UNKNOWN
                    && (declared == **ty
                        || (registry::category(declared) == registry::category(**ty)
                            && registry::is_preferred(declared)))
            })
            .count()
    });
    if let Some(choice) = settled(&fits) {
        return choice;
    }
    narrow_unknown(&mut fits, &bases);
    if let Some(choice) = settled(&fits) {
        return choice;
    }
    // All known arguments have one type: the unknown ones get it too.
    let mut known = bases.iter().copied().filter(|ty| *ty != oid::UNKNOWN);
    if let Some(first) = known.next()
        && known.all(|ty| ty == first)
        && bases.contains(&oid::UNKNOWN)
    {
        let mut alike = fits
            .iter()
            .copied()
            .filter(|function| (0..bases.len()).all(|at| accepts(declared(function, at), first)))
            .filter(|function| consistent(function, &vec![first; bases.len()]));
        if let (Some(one), None) = (alike.next(), alike.next()) {
            return Choice::One(one);
        }
    }
    Choice::Many
}

/// Drops candidates that do not take the category of an unknown argument.
fn narrow_unknown(fits: &mut Vec<&'static Function>, arguments: &[u32]) {
    let mut wanted = Vec::new();
    for (at, _) in arguments.iter().enumerate().filter(|(_, ty)| **ty == oid::UNKNOWN) {
        let categories: Vec<u8> =
            fits.iter().map(|function| registry::category(declared(function, at))).collect();
        let category = if categories.contains(&b'S') {
            b'S'
        } else if categories.iter().all(|category| *category == categories[0]) {
            categories[0]
        } else {
            return;
        };
        let preferred = fits.iter().any(|function| {
            let declared = declared(function, at);
            registry::category(declared) == category && registry::is_preferred(declared)
        });
        wanted.push((at, category, preferred));
    }
    let kept: Vec<&'static Function> = fits
        .iter()
        .copied()
        .filter(|function| {
            wanted.iter().all(|(at, category, preferred)| {
                let declared = declared(function, *at);
                registry::category(declared) == *category && (!preferred || registry::is_preferred(declared))
            })
        })
        .collect();
    if !kept.is_empty() {
        *fits = kept;
    }
}

/// The types of the arguments that must determine one element type.
pub(super) fn polymorphic(function: &Function, types: &[Type]) -> impl Iterator<Item = Type> {
    types.iter().enumerate().filter_map(|(at, type_)| {
        matches!(declared(function, at), oid::ANYARRAY | oid::ANYELEMENT | oid::ANYNONARRAY).then_some(*type_)
    })
}

/// The concrete types of a chosen function's arguments and result.
pub(super) fn concrete(function: &Function, types: &[Type]) -> (Vec<Type>, Type) {
    let mut element = None;
    let mut compatible = Vec::new();
    for (at, ty) in types.iter().enumerate().filter(|(_, ty)| ty.oid != oid::UNKNOWN) {
        match declared(function, at) {
            oid::ANYARRAY => element = element.or(registry::element_of(ty.oid)),
            oid::ANYELEMENT | oid::ANYNONARRAY => element = element.or(Some(ty.oid)),
            oid::ANYCOMPATIBLEARRAY => compatible.extend(registry::element_of(ty.oid).map(Type::new)),
            oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => compatible.push(Type::new(ty.oid)),
            _ => {}
        }
    }
    let element = element.unwrap_or(oid::TEXT);
    let compatible = super::casts::common_type("function", &compatible).map_or(oid::TEXT, |ty| ty.oid);
    let settle = |declared: u32, argument: Option<Type>| match declared {
        oid::ANY => argument.filter(|ty| ty.oid != oid::UNKNOWN).unwrap_or(Type::TEXT),
        oid::ANYELEMENT | oid::ANYNONARRAY => Type::new(element),
        oid::ANYARRAY => Type::new(registry::array_of(element).unwrap_or(oid::TEXT_ARRAY)),
        oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLENONARRAY => Type::new(compatible),
        oid::ANYCOMPATIBLEARRAY => Type::new(registry::array_of(compatible).unwrap_or(oid::TEXT_ARRAY)),
        other => Type::new(other),
    };
    let arguments =
        types.iter().enumerate().map(|(at, ty)| settle(declared(function, at), Some(*ty))).collect();
    (arguments, settle(function.result, None))
}
