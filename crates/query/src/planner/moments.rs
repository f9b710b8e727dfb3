//! Dates and timestamps as bounds of columns of another such type.
//!
//! PostgreSQL compares them across their types: as moments of the session's time zone. A value then
//! bounds the column's keys from its own place on the calendar. The ends belong to the range, and
//! the rows there need the comparison itself.
//!
//! What must hold: the range has every row for which the comparison is true. The conversion of a
//! value does not fail.
//!
//! A local time that the clock skips or repeats is a moment out of order. So a moment's place among
//! local times is taken three times: with the zone's offset now, a day before, and a day after. The
//! earliest is the lower end, and the latest the upper one. Between two times with one offset the
//! order of local times is that of moments.
//!
//! PostgreSQL's own index scans miss rows with a local time that the clock skips. Its scans of the
//! whole table return them.

use expressions::expr::{Case, Cast, Expr, Extreme};
use expressions::function::Comparison;
use expressions::functions::{self, CastContext};
use values::types::{Interval, Type, Value, oid};

/// How long before and after a moment the zone's offset is looked up, in microseconds: 26 hours. No
/// zone has moved its clocks by more than 24 hours.
const AROUND: i64 = 26 * 3600 * 1_000_000;
/// The last day of a timestamp, as days since 2000-01-01.
const LAST_DAY: i32 = 106_751_982;
/// Moments whose surroundings are timestamps too, in microseconds since 2000-01-01: from the year
/// 4712 BC to the year 294,275.
const SAFE: [i64; 2] = [-211_800_000_000_000_000, 9_223_300_000_000_000_000];

/// Whether a value of one of these types bounds a column of the other, though it is no key of it.
pub(super) fn bounds(value: Type, column: Type, comparison: Comparison) -> bool {
    match (column.oid, value.oid) {
        (oid::DATE, oid::TIMESTAMP) | (oid::TIMESTAMP, oid::DATE) => true,
        (oid::DATE | oid::TIMESTAMP, oid::TIMESTAMPTZ) => comparison != Comparison::Equal,
        _ => false,
    }
}

/// Whether a cast turns a date or a timestamp into the moment that it is compared as. No two values
/// become one, apart from local times that the clock skips or repeats.
pub(super) fn is_moment(cast: &Cast) -> bool {
    let (from, to) = (cast.input.type_().oid, cast.type_);
    let widens = matches!(
        (from, to.oid),
        (oid::DATE, oid::TIMESTAMP | oid::TIMESTAMPTZ) | (oid::TIMESTAMP, oid::TIMESTAMPTZ)
    );
    widens && to == Type::new(to.oid)
}

/// Whether the types are those of a column and a value as in [`bounds`].
pub(super) fn differ(value: Type, column: Type) -> bool {
    bounds(value, column, Comparison::Less)
}

/// The place of a value among a column's keys.
pub(super) fn key(value: &Expr, column: Type, comparison: Comparison) -> Option<Expr> {
    let wanted = Type::new(column.oid);
    let cast = |value: Expr| functions::cast(value, wanted, CastContext::Explicit).ok();
    match (column.oid, value.type_().oid) {
        (oid::DATE, oid::TIMESTAMP) => cast(value.clone()),
        (oid::DATE, oid::TIMESTAMPTZ) => cast(local(value, comparison)?),
        (oid::TIMESTAMP, oid::DATE) => {
            let last = Expr::constant(Value::Date(LAST_DAY), Type::DATE);
            let fits = functions::operator("<=", Some(value.clone()), last).ok()?;
            let place = either(fits, cast(value.clone())?, Value::Timestamp(i64::MAX), wanted);
            Some(unless_null(value, place, wanted))
        }
        (oid::TIMESTAMP, oid::TIMESTAMPTZ) => local(value, comparison),
        _ => None,
    }
}

/// The earliest local time that a moment may be the end of, or the latest.
fn local(value: &Expr, comparison: Comparison) -> Option<Expr> {
    let wanted = Type::new(oid::TIMESTAMP);
    let is_low = matches!(comparison, Comparison::Greater | Comparison::GreaterEqual);
    let cast = |value: Expr| functions::cast(value, wanted, CastContext::Explicit).ok();
    let interval = |micros: i64| {
        let span = Interval { months: 0, days: 0, micros };
        Expr::constant(Value::Interval(span), Type::new(oid::INTERVAL))
    };
    let added = |value: Expr, micros: i64| functions::operator("+", Some(value), interval(micros)).ok();
    let seen_from = |micros: i64| added(cast(added(value.clone(), micros)?)?, -micros);
    let arguments = vec![cast(value.clone())?, seen_from(AROUND)?, seen_from(-AROUND)?];
    let place = Expr::Extreme(Box::new(Extreme { greatest: !is_low, arguments, type_: wanted }));
    let ends = SAFE.map(|end| Expr::constant(Value::Timestamptz(end), Type::new(oid::TIMESTAMPTZ)));
    let [first, last] = ends;
    let inside = vec![
        functions::operator(">", Some(value.clone()), first).ok()?,
        functions::operator("<", Some(value.clone()), last).ok()?,
    ];
    let all = Value::Timestamp(if is_low { i64::MIN } else { i64::MAX });
    Some(unless_null(value, either(Expr::And(inside), place, all, wanted), wanted))
}

/// An expression where a value is not NULL, else NULL.
fn unless_null(value: &Expr, otherwise: Expr, type_: Type) -> Expr {
    let is_null = Expr::NullTest { input: Box::new(value.clone()), negated: false };
    Expr::Case(Box::new(Case { branches: vec![(is_null, Expr::null(type_))], otherwise, type_ }))
}

fn either(test: Expr, result: Expr, otherwise: Value, type_: Type) -> Expr {
    let otherwise = Expr::constant(otherwise, type_);
    Expr::Case(Box::new(Case { branches: vec![(test, result)], otherwise, type_ }))
}
