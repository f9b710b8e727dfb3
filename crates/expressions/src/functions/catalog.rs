//! Functions that the session or the catalog answers, through [`values::environment::Environment`].
//!
//! What must hold:
//!
//! 1. None of these functions is immutable: folding has no session.
//! 2. A function with an effect, or whose answer changes within a statement, is volatile.
//! 3. Texts among the arguments are names. They are cut before they are looked up, so a long text
//!    costs no more than a name.

use smallvec::SmallVec;

use super::arguments::{boolean, give_text, int, name, text};
use crate::context::EvalContext;
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::types::{ArrayBuilder, Datum, Type, oid, registry};

const TEXT: u32 = oid::TEXT;
const OID: u32 = oid::OID;
const I4: u32 = oid::INT4;
const I8: u32 = oid::INT8;

/// The result of version(), and the source of server_version.
const VERSION: &str = "PostgreSQL 18.0 (Allcore)";

/// A function that [`values::environment::Environment::catalog_function`] answers under the
/// function's name.
macro_rules! asked {
    ($name:literal, $arguments:expr, $result:expr) => {
        func($name, $arguments, $result, |cx, a| super::catalog::ask(cx, $name, a)).stable()
    };
}
pub(super) use asked;

/// Asks the session or the catalog. All texts among the arguments are names.
pub(super) fn ask<'a>(
    cx: &mut EvalContext<'a, '_>,
    function: &str,
    arguments: &[Datum<'a>],
) -> Result<Datum<'a>, SqlError> {
    let names = arguments.iter().map(|argument| match argument {
        Datum::Text(_) | Datum::Padded(_) => name(*argument).map(Datum::Text),
        other => Ok(*other),
    });
    let names = names.collect::<Result<SmallVec<[_; 4]>, _>>()?;
    cx.session.catalog_function(function, &names, cx.arena)
}

fn setting(name: &str, found: Option<String>) -> Result<String, SqlError> {
    found.ok_or_else(|| {
        SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
    })
}

pub(super) static FUNCTIONS: &[Function] = &[
    func("version", &[], TEXT, |_, _| Ok(Datum::Text(VERSION))).stable(),
    func("current_setting", &[TEXT], TEXT, |cx, a| {
        let name = name(a[0])?;
        give_text(&setting(name, cx.session.setting(name))?, cx.arena)
    })
    .stable(),
    func("current_setting", &[TEXT, oid::BOOL], TEXT, |cx, a| {
        let name = name(a[0])?;
        match cx.session.setting(name) {
            None if boolean(a[1])? => Ok(Datum::Null),
            found => give_text(&setting(name, found)?, cx.arena),
        }
    })
    .stable(),
    func("set_config", &[TEXT, TEXT, oid::BOOL], TEXT, |cx, a| {
        if a[0].is_null() {
            let message = "SET requires parameter name";
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        let value = if a[1].is_null() { None } else { Some(text(a[1])?) };
        let local = !a[2].is_null() && boolean(a[2])?;
        give_text(&cx.session.set_setting(name(a[0])?, value, local)?, cx.arena)
    })
    .lax()
    .volatile(),
    func("current_user", &[], oid::NAME, |cx, _| give_text(&cx.session.current_user(), cx.arena)).stable(),
    func("user", &[], oid::NAME, |cx, _| give_text(&cx.session.current_user(), cx.arena)).stable(),
    func("current_role", &[], oid::NAME, |cx, _| give_text(&cx.session.current_user(), cx.arena)).stable(),
    func("session_user", &[], oid::NAME, |cx, _| give_text(&cx.session.session_user(), cx.arena)).stable(),
    func("current_database", &[], oid::NAME, |cx, _| give_text(&cx.session.current_database(), cx.arena))
        .stable(),
    func("current_catalog", &[], oid::NAME, |cx, _| give_text(&cx.session.current_database(), cx.arena))
        .stable(),
    func("current_schema", &[], oid::NAME, |cx, _| {
        cx.session.current_schema().map_or(Ok(Datum::Null), |name| give_text(&name, cx.arena))
    })
    .stable(),
    func("current_schemas", &[oid::BOOL], oid::NAME_ARRAY, |cx, a| {
        let mut builder = ArrayBuilder::new(oid::NAME);
        for name in &cx.session.current_schemas(boolean(a[0])?) {
            builder.push(Datum::Text(name))?;
        }
        builder.array_in(cx.arena)
    })
    .stable(),
    func("pg_backend_pid", &[], I4, |cx, _| Ok(Datum::Int4(cx.session.backend_pid()))).stable(),
    func("format_type", &[OID, I4], TEXT, |cx, a| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        let type_oid = int(a[0])? as u32;
        let modifier = if a[1].is_null() { -1 } else { int(a[1])? as i32 };
        Ok(match registry::info(type_oid) {
            // Without a length, bpchar has a name of its own only when the caller gave no modifier.
            Some(_) => {
                let type_ = Type::with_modifier(type_oid, modifier);
                let name =
                    if a[1].is_null() { type_.to_string() } else { registry::format_type_exactly(type_) };
                give_text(&name, cx.arena)?
            }
            None => Datum::Text("???"),
        })
    })
    .lax()
    .stable(),
    func("nextval", &[oid::REGCLASS], I8, |cx, a| {
        Ok(Datum::Int8(cx.session.sequence_next(int(a[0])? as u32)?))
    })
    .volatile(),
    func("currval", &[oid::REGCLASS], I8, |cx, a| {
        Ok(Datum::Int8(cx.session.sequence_current(int(a[0])? as u32)?))
    })
    .volatile(),
    func("lastval", &[], I8, |cx, _| Ok(Datum::Int8(cx.session.sequence_last()?))).volatile(),
    func("setval", &[oid::REGCLASS, I8], I8, |cx, a| {
        Ok(Datum::Int8(cx.session.sequence_set(int(a[0])? as u32, int(a[1])?, true)?))
    })
    .volatile(),
    func("setval", &[oid::REGCLASS, I8, oid::BOOL], I8, |cx, a| {
        Ok(Datum::Int8(cx.session.sequence_set(int(a[0])? as u32, int(a[1])?, boolean(a[2])?)?))
    })
    .volatile(),
    func("pg_get_expr", &[TEXT, OID], TEXT, |_, a| Ok(a[0])).stable(),
    func("pg_get_expr", &[TEXT, OID, oid::BOOL], TEXT, |_, a| Ok(a[0])).stable(),
    asked!("pg_get_indexdef", &[OID], TEXT),
    asked!("pg_get_indexdef", &[OID, I4, oid::BOOL], TEXT),
    asked!("pg_get_constraintdef", &[OID], TEXT),
    asked!("pg_get_constraintdef", &[OID, oid::BOOL], TEXT),
    asked!("pg_get_userbyid", &[OID], oid::NAME),
    asked!("pg_get_serial_sequence", &[TEXT, TEXT], TEXT),
    asked!("pg_table_is_visible", &[OID], oid::BOOL),
    asked!("pg_type_is_visible", &[OID], oid::BOOL),
    asked!("pg_function_is_visible", &[OID], oid::BOOL),
    asked!("pg_relation_size", &[oid::REGCLASS], I8),
    asked!("pg_relation_size", &[oid::REGCLASS, TEXT], I8),
    asked!("pg_table_size", &[oid::REGCLASS], I8),
    asked!("pg_indexes_size", &[oid::REGCLASS], I8),
    asked!("pg_total_relation_size", &[oid::REGCLASS], I8),
    asked!("pg_database_size", &[oid::NAME], I8),
    asked!("pg_database_size", &[OID], I8),
    asked!("pg_encoding_to_char", &[I4], oid::NAME),
    asked!("obj_description", &[OID, oid::NAME], TEXT),
    asked!("obj_description", &[OID], TEXT),
    asked!("col_description", &[OID, I4], TEXT),
    asked!("shobj_description", &[OID, oid::NAME], TEXT),
    asked!("to_regclass", &[TEXT], oid::REGCLASS),
    asked!("to_regtype", &[TEXT], oid::REGTYPE),
    asked!("pg_is_in_recovery", &[], oid::BOOL),
    asked!("txid_current", &[], I8),
    asked!("pg_postmaster_start_time", &[], oid::TIMESTAMPTZ),
    asked!("pg_blocking_pids", &[I4], oid::INT4_ARRAY).volatile(),
    asked!("pg_isolation_test_session_is_blocked", &[I4, oid::INT4_ARRAY], oid::BOOL).volatile(),
    asked!("pg_sleep", &[oid::FLOAT8], oid::VOID).volatile(),
    asked!("pg_cancel_backend", &[I4], oid::BOOL).volatile(),
    asked!("pg_terminate_backend", &[I4], oid::BOOL).volatile(),
    asked!("allcore_lock_profile_enable", &[], oid::VOID).volatile(),
    asked!("allcore_lock_profile_disable", &[], oid::VOID).volatile(),
    asked!("allcore_lock_profile_reset", &[], oid::VOID).volatile(),
    asked!("allcore_wait_history_start", &[I4], oid::VOID).volatile(),
    asked!("allcore_wait_history_stop", &[], oid::VOID).volatile(),
    asked!("allcore_wait_history_reset", &[], oid::VOID).volatile(),
];
