//! Resident memory that is not counted: holes in the heaps are given back, and the rest makes
//! memory short. A process of its own: the count is the process's.
#![allow(missing_docs, reason = "a test")]

use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime::account;
use sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static COUNTING: account::Counting = account::Counting;

const MIB: usize = 1 << 20;
const TABLES: usize = 400;
const SMALL: usize = 256 << 10;
const LARGE: usize = 640 << 10;
/// Least of what the growth leaves in holes that no new table fits.
const HOLES: usize = TABLES * SMALL;
/// The memory of the grown tables and of half the holes.
const MOST: usize = TABLES * LARGE + HOLES / 2;
const LIMIT: u64 = 400 << 20;

/// Resident bytes, pages of files aside.
fn resident() -> usize {
    let line = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: Vec<usize> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
    (pages[1] - pages[2]) * 4096
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Takes a lease, so that the watch looks.
fn take_a_lease() {
    drop(std::hint::black_box(vec![1_u8; 4 * MIB]));
}

#[test]
fn holes_in_the_heaps_are_given_back_and_other_resident_memory_makes_it_short() {
    let before = resident();
    let relieved = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&relieved);
    account::set_limit(LIMIT);
    let most = before + MOST;
    account::watch(most as u64, move || {
        counter.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();

    // Between two tables lies a block that stays, so that two holes never become one.
    let mut tables: Vec<Vec<u8>> = Vec::new();
    let mut between: Vec<Box<[u8; 100]>> = Vec::new();
    for _ in 0..TABLES {
        tables.push(vec![1; SMALL]);
        between.push(Box::new([1; 100]));
    }
    for table in &mut tables {
        *table = vec![2; LARGE];
    }
    until("holes stay", || {
        take_a_lease();
        resident() < most && !account::is_short() && account::excess() == 0
    });
    let relieved_for_holes = relieved.load(Ordering::Relaxed);

    // Memory that the count does not know.
    let length = HOLES;
    // SAFETY: a new mapping, at a place that the system chooses.
    let mapped = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
            0,
        )
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    until("memory is not short", || {
        take_a_lease();
        account::is_short() && account::excess() > 0 && relieved.load(Ordering::Relaxed) > relieved_for_holes
    });
    assert!(account::taken() as usize > LIMIT as usize + HOLES / 4, "{} are taken", account::taken());
    // SAFETY: the mapping made above, which nobody uses.
    unsafe { libc::munmap(mapped, length) };
    until("memory stays short", || !account::is_short());
    assert!((account::taken() as usize) < TABLES * LARGE + 16 * MIB, "{} are taken", account::taken());
    drop((tables, between));
}
