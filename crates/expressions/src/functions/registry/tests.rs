//! Immutable functions give the same result in every session, because plans hold their results.

use bumpalo::Bump;
use values::environment::{Environment, NoSession};
use values::text;
use values::types::datetime::Zone;
use values::types::settings::{DateOrder, DateStyle, IntervalStyle};
use values::types::{Datum, Settings, Type, oid};

use super::LISTS;
use crate::context::EvalContext;
use crate::function::{Function, Volatility};

/// The most calls of one function.
const CALLS: usize = 2000;

/// Values of a type whose meaning or text depends on a session's settings where a type's can.
fn samples(ty: u32) -> Vec<(u32, &'static str)> {
    let of = |ty: u32, texts: &[&'static str]| texts.iter().map(|text| (ty, *text)).collect();
    match ty {
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME => {
            of(ty, &["IST", "hour", "0.1", "10/11/2012 10:00", "\\x00ff", "YYYY-MM-DD HH24 TZ", "1 day"])
        }
        oid::BOOL => of(ty, &["true"]),
        oid::BYTEA => of(ty, &["\\x00ff5c"]),
        oid::FLOAT4 => of(ty, &["0.3333333"]),
        oid::FLOAT8 => of(ty, &["0.30000000000000004", "5"]),
        oid::NUMERIC => of(ty, &["1.50"]),
        oid::DATE => of(ty, &["2012-11-10"]),
        oid::TIME => of(ty, &["01:02:03"]),
        oid::TIMESTAMP => of(ty, &["2012-11-10 01:30:00", "2020-06-01"]),
        oid::TIMESTAMPTZ => of(ty, &["2012-11-10 20:30:00+00", "2020-06-01+00"]),
        oid::INTERVAL => of(ty, &["-1 mons 2 days -03:00:00", "05:30:00"]),
        oid::ANY | oid::ANYELEMENT | oid::ANYNONARRAY => {
            [oid::FLOAT8, oid::BYTEA, oid::TIMESTAMPTZ, oid::INTERVAL].into_iter().flat_map(samples).collect()
        }
        oid::ANYARRAY => {
            vec![(oid::FLOAT8_ARRAY, "{0.30000000000000004}"), (oid::BYTEA_ARRAY, "{\"\\\\x5c\"}")]
        }
        oid::UUID => of(ty, &["00000000-0000-0000-0000-00000000000a"]),
        _ if values::types::element_of(ty).is_some() => of(ty, &["{}"]),
        _ => of(ty, &["1", "2"]),
    }
}

/// The result of a call in a session, as bytes that no setting changes.
fn result(function: &Function, arguments: &[(u32, &'static str)], session: &dyn Environment) -> String {
    let (arena, plain) = (Bump::new(), NoSession::default());
    let mut values = Vec::new();
    for (ty, written) in arguments {
        match text::parse(written, Type::new(*ty), &plain, &arena) {
            Ok(value) => values.push(value),
            Err(_) => return String::new(),
        }
    }
    let value = (function.code)(&mut EvalContext::new(&[], &[], &arena, session), &values);
    match value {
        Err(error) => error.code.to_string(),
        Ok(Datum::Record(_)) => String::new(),
        Ok(value) => {
            let mut bytes = Vec::new();
            values::binary::write(value, Type::TEXT, &mut bytes).expect("is written");
            format!("{bytes:?}")
        }
    }
}

#[test]
fn an_immutable_function_gives_the_same_result_in_every_session() {
    let other = NoSession::with(Settings {
        time_zone: Zone::named("Asia/Kolkata").expect("is known"),
        date_style: DateStyle::German,
        date_order: DateOrder::Dmy,
        interval_style: IntervalStyle::SqlStandard,
        bytea_escape: true,
        extra_float_digits: -3,
        ..Settings::default()
    });
    let plain = NoSession::default();
    for function in
        LISTS.iter().copied().flatten().filter(|function| function.volatility == Volatility::Immutable)
    {
        let mut calls: Vec<Vec<(u32, &str)>> = vec![Vec::new()];
        for ty in function.arguments {
            let longer = |call: &Vec<_>| {
                let with = |sample| call.iter().copied().chain([sample]).collect::<Vec<_>>();
                samples(*ty).into_iter().map(with).collect::<Vec<_>>()
            };
            calls = calls.iter().flat_map(longer).take(CALLS).collect();
        }
        for call in calls {
            let (here, there) = (result(function, &call, &plain), result(function, &call, &other));
            assert_eq!(here, there, "{} of {call:?}", function.name);
        }
    }
}
