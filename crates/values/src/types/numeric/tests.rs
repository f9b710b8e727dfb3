//! The text and binary forms of numerics, and the scales of results.

use super::arithmetic::Operation;
use super::*;

fn n(text: &str) -> Numeric {
    Numeric::parse(text).unwrap()
}

fn text(value: &Numeric) -> String {
    let mut out = Vec::new();
    NumericRef(&value.pack().unwrap()).write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn numerics_come_back_from_their_text() {
    for (input, output) in [
        ("0", "0"),
        ("-0.00", "0.00"),
        ("1.10", "1.10"),
        (" 12e3 ", "12000"),
        ("1e-3", "0.001"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1_000.5", "1000.5"),
        ("0xff", "255"),
        ("NaN", "NaN"),
        ("-inf", "-Infinity"),
        (
            "123456789012345678901234567890123456789012345678901234567890.123",
            "123456789012345678901234567890123456789012345678901234567890.123",
        ),
    ] {
        assert_eq!(text(&n(input)), output, "{input}");
    }
    for bad in ["", "a", "1e", "1..2", "--1", "1_", "0x", "-NaN", "."] {
        assert!(Numeric::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn numerics_come_back_from_their_binary_format() {
    for input in
        ["0", "0.00", "1", "-1.5", "10000", "0.0001", "123456789.987654321", "1e40", "NaN", "Infinity"]
    {
        let packed = n(input).pack().unwrap();
        let mut out = Vec::new();
        NumericRef(&packed).write_binary(&mut out);
        assert_eq!(text(&Numeric::parse_binary(&out).unwrap()), text(&n(input)));
    }
}

#[test]
fn arithmetic_has_postgresql_scales() {
    assert_eq!(text(&n("1").divide(&n("3")).unwrap()), "0.33333333333333333333");
    assert_eq!(text(&n("10").divide(&n("3")).unwrap()), "3.3333333333333333");
    assert_eq!(text(&n("2").sqrt().unwrap()), "1.414213562373095");
    assert_eq!(text(&n("1").exp().unwrap()), "2.7182818284590452");
    assert_eq!(text(&n("2").ln().unwrap()), "0.6931471805599453");
    assert_eq!(text(&n("2").power(&n("0.5")).unwrap()), "1.4142135623730950");
    assert_eq!(text(&n("2").power(&n("10")).unwrap()), "1024.0000000000000");
    assert_eq!(text(&n("100").log(&n("10")).unwrap()), "2.0000000000000000");
    assert_eq!(text(&n("2.5").round(0)), "3");
    assert_eq!(text(&n("-2.5").round(0)), "-3");
    assert_eq!(text(&n("1234.5").round(-2)), "1200");
    assert_eq!(text(&n("7.5").modulo(&n("-2")).unwrap()), "1.5");
    let arena = Bump::new();
    let (left, right) = (n("1.10").pack().unwrap(), n("2.005").pack().unwrap());
    let sum = arithmetic::combine(Operation::Add, NumericRef(&left), NumericRef(&right), &arena).unwrap();
    assert_eq!(text(&sum.load()), "3.105");
}
