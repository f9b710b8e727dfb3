//! The workspace follows every rule, but for what the lists tolerate.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tidy::{RULES, Workspace, list};

/// The reports of the rules that failed, by the rule's name. Reading the sources takes most of the time.
static FAILED: LazyLock<BTreeMap<&str, String>> = LazyLock::new(|| {
    let workspace = Workspace::read();
    RULES.iter().filter_map(|rule| Some((rule.name, list::check(&workspace, rule).err()?))).collect()
});

fn holds(rule: &str) {
    assert!(RULES.iter().any(|known| known.name == rule), "there is no rule {rule}");
    if let Some(report) = FAILED.get(rule) {
        panic!("\n{report}");
    }
}

#[test]
fn a_crate_imports_only_crates_above_it() {
    holds("rooms");
}

#[test]
fn sibling_modules_form_no_circle() {
    holds("circles");
}
