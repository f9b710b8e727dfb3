//! The workspace follows every rule, but for what the lists tolerate.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use tidy::{RULES, Workspace, list};

/// The reports of the rules that failed, by the rule's name.
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
    holds("layers");
}

#[test]
fn the_engine_reaches_the_machine_through_its_interfaces_only() {
    holds("machine");
}

#[test]
fn sibling_modules_form_no_circle() {
    holds("circles");
}

#[test]
fn every_file_opens_with_its_contract() {
    holds("heads");
}

#[test]
fn lines_of_prose_stay_within_100_columns() {
    holds("columns");
}

#[test]
fn functions_stay_within_70_lines() {
    holds("functions");
}

#[test]
fn files_stay_within_700_lines() {
    holds("files");
}

#[test]
fn finished_code_holds_no_leftovers_of_work() {
    holds("leftovers");
}

#[test]
fn sentences_begin_with_their_subject_and_names_are_terms_of_the_field() {
    holds("words");
}

#[test]
fn sentences_stay_within_25_words() {
    holds("sentences");
}

#[test]
fn a_test_is_named_by_a_sentence() {
    holds("tests");
}

#[test]
fn only_three_crates_may_contain_unsafe_code() {
    holds("unsafety");
}

#[test]
fn another_crate_uses_each_public_item() {
    holds("public");
}

#[test]
fn links_of_documents_lead_somewhere() {
    holds("links");
}

#[test]
fn commands_and_files_that_documents_name_exist() {
    holds("commands");
}
