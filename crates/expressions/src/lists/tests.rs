//! Look-ups against searches, over random lists of each type.

use bumpalo::Bump;
use values::environment::NoSession;
use values::text;
use values::types::{ArrayBuilder, Type, Value, array_of};

use super::*;
use crate::context::EvalContext;
use crate::expr::Expr;
use crate::functions::{Bound, function, in_list, operator, operator_any};

/// A type on the left, one of the elements, and values of both. Several values are equal.
const TYPES: &[(u32, u32, &[&str])] = &[
    (oid::BOOL, oid::BOOL, &["t", "f"]),
    (oid::CHAR, oid::CHAR, &["a", "b", "c", "d", ""]),
    (oid::INT2, oid::INT2, &["-32768", "-1", "0", "1", "2", "3", "32767"]),
    (oid::INT2, oid::INT8, &["-1", "0", "1", "2", "3", "4", "5", "6"]),
    (oid::INT4, oid::INT4, &["-2147483648", "-1", "0", "1", "2", "7", "2147483647"]),
    (oid::INT8, oid::INT4, &["-1", "0", "1", "2", "3", "4", "5", "6"]),
    (oid::INT8, oid::INT8, &["-9223372036854775808", "0", "1", "4294967296", "9223372036854775807"]),
    (oid::OID, oid::OID, &["0", "1", "4294967295", "-1", "16384"]),
    (oid::FLOAT4, oid::FLOAT4, &["0", "-0", "NaN", "Infinity", "-Infinity", "1.5", "0.1"]),
    (oid::FLOAT4, oid::FLOAT8, &["0", "-0", "NaN", "1.5", "0.1", "-2", "3", "4"]),
    (oid::FLOAT8, oid::FLOAT8, &["0", "-0", "NaN", "Infinity", "-Infinity", "1.5", "0.1", "1e300"]),
    (oid::NUMERIC, oid::NUMERIC, &["0", "0.00", "1", "1.0", "1.00", "-1.50", "-1.5", "10", "100", "NaN"]),
    (
        oid::NUMERIC,
        oid::NUMERIC,
        &[
            "1",
            "1.00000000000000000000000000000000000000000000",
            "36028797018963967",
            "36028797018963968.0",
            "36028797018963968",
            "-36028797018963968",
            "1e-300",
            "1e40",
            "Infinity",
            "-Infinity",
        ],
    ),
    (oid::TEXT, oid::TEXT, &["", " ", "a", "a ", "A", "ab", "é", "e"]),
    (oid::VARCHAR, oid::VARCHAR, &["", " ", "a", "a ", "A", "ab"]),
    (oid::NAME, oid::TEXT, &["a", "b", "ab", "c", "d"]),
    (oid::BPCHAR, oid::BPCHAR, &["", " ", "a", "a ", "a  ", "A", "ab"]),
    (oid::BYTEA, oid::BYTEA, &["", "\\x00", "\\x0000", "\\x01", "\\xff"]),
    (oid::DATE, oid::DATE, &["2024-01-01", "2024-01-02", "infinity", "-infinity", "1900-02-28"]),
    (oid::DATE, oid::TIMESTAMP, &["2024-01-01", "2024-01-02", "infinity", "-infinity", "1900-02-28"]),
    (oid::TIME, oid::TIME, &["00:00", "24:00", "12:00", "12:00:00.000001"]),
    (oid::TIMESTAMP, oid::TIMESTAMP, &["2024-01-01", "2024-01-01 00:00:00.000001", "infinity", "-infinity"]),
    (oid::TIMESTAMPTZ, oid::TIMESTAMPTZ, &["2024-01-01 00:00+00", "2024-01-01 01:00+01", "infinity"]),
    (oid::INTERVAL, oid::INTERVAL, &["1 month", "30 days", "720 hours", "1 day", "24 hours", "0", "-1 day"]),
    (oid::UUID, oid::UUID, &["00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"]),
    (
        oid::NUMERIC_ARRAY,
        oid::NUMERIC_ARRAY,
        &["{}", "{1}", "{1.0}", "{1,NULL}", "{1.00,NULL}", "{{1}}", "[2:2]={1}", "{NULL}"],
    ),
    (oid::TEXT_ARRAY, oid::TEXT_ARRAY, &["{}", "{a}", "{\"a \"}", "{a,b}", "{{a,b}}", "{NULL,a}"]),
];

/// Numbers that repeat themselves.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }
}

fn constant(text: &str, type_: u32) -> Expr {
    let (arena, type_) = (Bump::new(), Type::new(type_));
    let value = text::parse(text, type_, &NoSession::default(), &arena).unwrap();
    Expr::Const(value.to_value().unwrap(), type_)
}

fn integers(values: std::ops::Range<i32>) -> Vec<(Expr, bool)> {
    values.map(|value| (Expr::Const(Value::Int4(value), Type::INT4), false)).collect()
}

fn array_type(element: u32) -> Type {
    Type::new(array_of(element).unwrap())
}

fn array(elements: &[Expr], element: u32, rows: usize) -> Expr {
    let mut builder = ArrayBuilder::new(element);
    elements.iter().for_each(|element| builder.push(element.as_const().unwrap().datum()).unwrap());
    let shape = [(rows as i32, 1), ((elements.len() / rows) as i32, -3)];
    let arena = Bump::new();
    let value = builder.array_with_in(&shape, &arena).unwrap().to_value().unwrap();
    Expr::Const(value, array_type(element))
}

/// The result of an evaluation, with registers and parameters of these values.
fn eval(expr: &Expr, values: &[Datum<'_>], lists: Option<&Lists>) -> Result<Option<bool>, String> {
    let (arena, session) = (Bump::new(), NoSession::default());
    let context = EvalContext::new(values, values, &arena, &session);
    let mut context = match lists {
        Some(lists) => context.with_lists(lists),
        None => context,
    };
    match expr.eval(&mut context) {
        Ok(Datum::Bool(value)) => Ok(Some(value)),
        Ok(Datum::Null) => Ok(None),
        Ok(other) => panic!("{other:?} is no truth value"),
        Err(error) => Err(error.message.clone()),
    }
}

/// Whether a run has prepared its only list; None where it has none.
fn prepared(lists: &Lists) -> Option<bool> {
    let tested = lists.0.borrow();
    tested.as_ref()?.lists.values().next().map(|state| matches!(state, State::Prepared(_)))
}

/// Evaluates a test for each of these values with a search and with a look-up.
fn compare(test: &Expr, lefts: &[Expr]) {
    let lists = Lists::default();
    for round in 0..3 {
        for left in lefts {
            let values = [left.as_const().unwrap().datum()];
            let (searched, found) = (eval(test, &values, None), eval(test, &values, Some(&lists)));
            assert_eq!(searched, found, "{left:?} in round {round} of {test:?}");
        }
    }
    assert_eq!(prepared(&lists), Some(true), "{test:?}");
}

#[test]
fn look_ups_in_random_lists_find_as_searches_do() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for (left, element, texts) in TYPES {
        let values = |type_: u32| {
            let mut values: Vec<Expr> = texts.iter().map(|text| constant(text, type_)).collect();
            values.push(Expr::null(Type::new(type_)));
            values
        };
        let (lefts, elements) = (values(*left), values(*element));
        for round in 0..24 {
            // Without the last element, which is NULL, in half of the rounds.
            let choice = &elements[usize::from(round % 4 == 0) * numbers.below(elements.len())..];
            let choice = &choice[..(choice.len() - round % 2).max(1)];
            let count = 9 + 3 * numbers.below(5);
            let list: Vec<Expr> = (0..count).map(|_| choice[numbers.below(choice.len())].clone()).collect();
            let value = Expr::column(0, Type::new(*left));
            for all in [false, true] {
                let items = list.iter().map(|item| (item.clone(), false)).collect();
                compare(&in_list(&value, items, all).unwrap(), &lefts);
                if array_of(*element).is_some() {
                    let array = array(&list, *element, 3);
                    let operator = if all { "<>" } else { "=" };
                    compare(&operator_any(operator, value.clone(), array, all).unwrap(), &lefts);
                }
            }
        }
    }
}

#[test]
fn every_nan_is_found_in_a_list_with_one() {
    let nans = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)];
    let constant = |value| Expr::Const(Value::Float8(value), Type::FLOAT8);
    let value = Expr::column(0, Type::FLOAT8);
    for nan in nans {
        let list = (0..9).map(f64::from).chain([nan]).map(|value| (constant(value), false)).collect();
        let test = in_list(&value, list, false).unwrap();
        compare(&test, &nans.map(constant));
        assert_eq!(eval(&test, &[Datum::Float8(f64::NAN)], None), Ok(Some(true)));
    }
}

#[test]
fn an_array_parameter_and_a_computed_array_are_prepared() {
    let elements: Vec<Expr> = integers(0..20).into_iter().map(|(item, _)| item).collect();
    let stored = array(&elements, oid::INT4, 4);
    let parameter = Expr::Param { index: 1, type_: array_type(oid::INT4) };
    let computed = Expr::Array { elements, type_: array_type(oid::INT4) };
    let register = Expr::column(1, array_type(oid::INT4));
    for (right, expected) in [(parameter, Some(true)), (computed, Some(true)), (register, None)] {
        let test = operator_any("=", Expr::column(0, Type::INT4), right, false).unwrap();
        let lists = Lists::default();
        for value in [0, 19, 20, -1, 7] {
            let values = [Datum::Int4(value), stored.as_const().unwrap().datum()];
            assert_eq!(eval(&test, &values, Some(&lists)), Ok(Some((0..20).contains(&value))));
        }
        assert_eq!(prepared(&lists), expected, "{test:?}");
    }
}

#[test]
fn short_lists_and_other_operators_are_searched() {
    let value = Expr::column(0, Type::INT4);
    let nine: Vec<Expr> = integers(0..9).into_iter().map(|(item, _)| item).collect();
    let any = |operator, all| operator_any(operator, value.clone(), array(&nine, oid::INT4, 1), all).unwrap();
    for (test, expected) in [
        (in_list(&value, integers(0..8), false).unwrap(), None),
        (in_list(&value, integers(0..9), false).unwrap(), Some(true)),
        (any("<>", false), Some(false)),
        (any("=", true), Some(false)),
        (any("<", false), Some(false)),
    ] {
        let lists = Lists::default();
        for left in [4, 3, 5, 40] {
            let values = [Datum::Int4(left)];
            assert_eq!(eval(&test, &values, Some(&lists)), eval(&test, &values, None));
        }
        assert_eq!(prepared(&lists), expected, "{test:?}");
    }
}

#[test]
fn elements_that_fail_or_vary_keep_the_search() {
    let integer = |value| Expr::Const(Value::Int4(value), Type::INT4);
    let register = Expr::column(0, Type::INT4);
    let one_by = |divisor| operator("/", Some(integer(1)), divisor).unwrap();
    let Bound::Scalar(random) = function("random", vec![integer(20), integer(30)], false).unwrap() else {
        panic!("random gives one value");
    };
    let elements =
        [(one_by(integer(0)), None), (one_by(register.clone()), None), (random, Some(Some(false)))];
    for (element, expected) in elements {
        let mut list = integers(1..12);
        list.push((element, false));
        let test = in_list(&register, list, false).unwrap();
        let lists = Lists::default();
        for value in [5, 1, 11] {
            assert_eq!(eval(&test, &[Datum::Int4(value)], Some(&lists)), Ok(Some(true)));
        }
        assert_eq!(prepared(&lists), Some(false), "{test:?}");
        assert_eq!(eval(&test, &[Datum::Int4(0)], Some(&lists)).ok(), expected, "{test:?}");
    }
}

#[test]
fn a_long_list_is_prepared_within_a_budget() {
    let texts: Vec<String> = (0..1 << 16).map(|number| number.to_string()).collect();
    let texts: Vec<Datum<'_>> = texts.iter().map(|text| Datum::Text(text)).collect();
    let integers: Vec<Datum<'_>> = (0..1 << 16).map(Datum::Int4).collect();
    for values in [texts, integers] {
        assert!(runtime::budget::within(1 << 18, || List::of(&values, false).is_err()));
        assert!(List::of(&values, false).unwrap().is_some());
    }
}
