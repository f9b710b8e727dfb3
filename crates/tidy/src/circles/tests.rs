//! Circles in small crates made of strings.

use super::*;
use crate::workspace::sample;

/// The levels with circles, and the circles' members.
fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let workspace = sample(files);
    let levels = levels(&workspace, &workspace.members[0]);
    let shown = |level: &Level| {
        level
            .circles()
            .iter()
            .map(|circle| format!("{}: {}", level.name, circle.join(" ")))
            .collect::<Vec<_>>()
    };
    levels.iter().flat_map(shown).collect()
}

#[test]
fn two_modules_that_import_each_other_form_a_circle() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use super::a::A; pub struct B;"),
    ]);
    assert_eq!(found, ["sample: a b"]);
}

#[test]
fn a_parent_and_its_child_may_name_each_other() {
    let found = circles(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod inner; use inner::Inner; pub struct A;"),
        ("a/inner.rs", "use super::A; pub struct Inner;"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_descendant_counts_for_the_sibling_above_it() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod deep; pub struct A;"),
        ("a/deep.rs", "fn f() { crate::b::g() }"),
        ("b.rs", "pub fn g() { let _ = crate::a::A; }"),
    ]);
    assert_eq!(found, ["sample: a b"]);
}

#[test]
fn an_import_from_the_root_counts_for_the_module_that_defines_the_name() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b; pub use b::*; pub use a::A;"),
        ("a.rs", "use crate::B; pub struct A;"),
        ("b.rs", "use crate::{A as Renamed}; pub struct B;"),
    ]);
    assert_eq!(found, ["sample: a b"]);
}

#[test]
fn paths_inside_macros_count() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub fn f() { println!(\"{}\", crate::b::g()) }"),
        ("b.rs", "pub fn g() -> u8 { crate::a::f(); 1 }"),
    ]);
    assert_eq!(found, ["sample: a b"]);
}

#[test]
fn code_for_tests_does_not_count() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        (
            "b.rs",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } #[cfg(all(test, unix))] use crate::a::A;",
        ),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_local_name_is_no_module() {
    let found = circles(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "pub struct B; fn f(a: u8) -> u8 { a::<u8>; a }"),
    ]);
    assert_eq!(found, Vec::<String>::new());
}
