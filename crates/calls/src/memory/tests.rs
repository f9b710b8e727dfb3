//! Threads and processes that reach the same memory, more of them than cores.

use super::mapping::free_huge_pages;
use super::*;
use crate::test_threads::{at_once, threads};

const BYTES: usize = 2 << 20;

#[test]
fn touches_of_more_threads_than_cores_add_up() {
    let object = Object::new(BYTES, PageKind::Ordinary).unwrap();
    at_once(|me| {
        let mapping = Mapping::of(&object, WITH_NOTHING).unwrap();
        for _ in 0..2 {
            (0..mapping.steps()).for_each(|step| mapping.touch((step + me.number()) % mapping.steps()));
            assert!(mapping.forget());
        }
    });
    let mapping = Mapping::of(&object, WITH_ALL_PRESENT).unwrap();
    assert_eq!(mapping.touches(), (threads() * 2 * mapping.steps()) as u64);
}

#[test]
fn processes_touch_what_this_one_sees_and_spend_tables_of_their_own() {
    let object = Object::new(16 * BYTES, PageKind::Ordinary).unwrap();
    let mapping = Mapping::of(&object, WITH_NOTHING).unwrap();
    let touchers: Vec<_> = (0..3).map(|at| Toucher::start(&object, &mapping, at * 100).unwrap()).collect();
    for toucher in &touchers {
        let before = toucher.table_bytes();
        toucher.touch();
        // 32 MiB of pages of 4 KiB have 16 tables of 4 KiB.
        assert!(toucher.table_bytes() >= before + 16 * 4096);
        toucher.touch_and_forget();
    }
    assert_eq!(mapping.touches(), (6 * mapping.steps()) as u64);
    assert!(table_bytes() > 0);
}

#[test]
fn a_process_maps_and_unmaps_memory_that_others_see() {
    let object = Object::new(BYTES, PageKind::Ordinary).unwrap();
    let mapping = Mapping::of(&object, WITH_NOTHING).unwrap();
    let toucher = Toucher::start(&object, &mapping, 7).unwrap();
    assert!(toucher.remap(false) && toucher.remap(true));
    let before = toucher.table_bytes();
    assert!(toucher.remap(false));
    assert_eq!(toucher.table_bytes(), before, "the tables go with the mapping");
    assert_eq!(mapping.touches(), (3 * mapping.steps()) as u64);
}

#[test]
fn removed_pages_read_zero_in_every_address_space() {
    let object = Object::new(BYTES, PageKind::Ordinary).unwrap();
    let mapping = Mapping::of(&object, WITH_ALL_PRESENT).unwrap();
    let toucher = Toucher::start(&object, &mapping, 0).unwrap();
    toucher.touch();
    assert_eq!(mapping.touches(), mapping.steps() as u64);
    mapping.remove().unwrap();
    assert_eq!(mapping.touches(), 0);
    mapping.populate().unwrap();
    toucher.touch();
    assert_eq!(mapping.touches(), mapping.steps() as u64);
}

#[test]
fn a_dropped_toucher_has_ended_its_process() {
    let object = Object::new(BYTES, PageKind::Ordinary).unwrap();
    let mapping = Mapping::of(&object, WITH_NOTHING).unwrap();
    let toucher = Toucher::start(&object, &mapping, 0).unwrap();
    let process = format!("/proc/{}", toucher.process_number());
    assert!(std::path::Path::new(&process).exists());
    drop(toucher);
    assert!(!std::path::Path::new(&process).exists());
}

#[test]
fn pages_that_the_machine_lacks_are_named() {
    let wanted = (free_huge_pages() + 1) * BYTES;
    let fault = Object::new(wanted, PageKind::Reserved).unwrap_err();
    assert!(fault.contains("reserve them by vm.nr_hugepages"), "{fault}");
}
