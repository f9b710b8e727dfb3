//! The functions of advisory locks, by one number of 64 bits or two of 32 bits. The session answers
//! them.

use crate::function::{Function, func};
use values::types::oid;

const WIDE: &[u32] = &[oid::INT8];
const PAIR: &[u32] = &[oid::INT4, oid::INT4];

/// A function that [`values::environment::Environment::catalog_function`] answers under the
/// function's name.
macro_rules! asked {
    ($name:literal, $arguments:expr, $result:expr) => {
        func($name, $arguments, $result, |cx, a| cx.session.catalog_function($name, a, cx.arena)).volatile()
    };
}

pub(super) static FUNCTIONS: &[Function] = &[
    asked!("pg_advisory_lock", WIDE, oid::VOID),
    asked!("pg_advisory_lock", PAIR, oid::VOID),
    asked!("pg_advisory_lock_shared", WIDE, oid::VOID),
    asked!("pg_advisory_lock_shared", PAIR, oid::VOID),
    asked!("pg_advisory_xact_lock", WIDE, oid::VOID),
    asked!("pg_advisory_xact_lock", PAIR, oid::VOID),
    asked!("pg_advisory_xact_lock_shared", WIDE, oid::VOID),
    asked!("pg_advisory_xact_lock_shared", PAIR, oid::VOID),
    asked!("pg_try_advisory_lock", WIDE, oid::BOOL),
    asked!("pg_try_advisory_lock", PAIR, oid::BOOL),
    asked!("pg_try_advisory_lock_shared", WIDE, oid::BOOL),
    asked!("pg_try_advisory_lock_shared", PAIR, oid::BOOL),
    asked!("pg_try_advisory_xact_lock", WIDE, oid::BOOL),
    asked!("pg_try_advisory_xact_lock", PAIR, oid::BOOL),
    asked!("pg_try_advisory_xact_lock_shared", WIDE, oid::BOOL),
    asked!("pg_try_advisory_xact_lock_shared", PAIR, oid::BOOL),
    asked!("pg_advisory_unlock", WIDE, oid::BOOL),
    asked!("pg_advisory_unlock", PAIR, oid::BOOL),
    asked!("pg_advisory_unlock_shared", WIDE, oid::BOOL),
    asked!("pg_advisory_unlock_shared", PAIR, oid::BOOL),
    asked!("pg_advisory_unlock_all", &[], oid::VOID),
];
