//! The sorter against a plain sort, with runs in memory and in temporary pages.

use std::sync::Arc;

use runtime::Runtime;
use txn::{Engine, folder};

use super::*;

/// Runs `body` on a worker with a new folder, and asserts afterwards that every page came
/// back.
fn with_folder(name: &str, body: impl FnOnce(&Folder) + Send) {
    let path = std::env::temp_dir().join(format!("allcore-sorter-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let options = runtime::Options { cores: Some(1), pin: false, ..runtime::Options::default() };
    let runtime = Runtime::start(options).unwrap();
    runtime.call(0, || {
        // 4 MiB of frames.
        let options = folder::Options { frames: 512, ..folder::Options::default() };
        let engine = Engine::open(folder::make(&path, &runtime, options, 1).unwrap()).unwrap();
        let used = || {
            let (pages, free) = engine.folder().temporary_pages();
            pages - free
        };
        let before = used();
        body(engine.folder());
        assert_eq!(used(), before, "every page was given back");
        engine.close().unwrap();
    });
    runtime.shutdown();
    let _ = std::fs::remove_dir_all(&path);
}

/// Keys with many duplicates, of lengths around those of the prefix; the payload says which one it
/// was.
fn entries(count: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut entry = |number: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let key = &(state % (count / 3 + 1)).to_be_bytes()[4..];
        let mut key = [&[0; 6], key].concat();
        key.truncate(4 + (state >> 40) as usize % 7);
        (key, [&number.to_le_bytes()[..], &vec![7; (state >> 50) as usize % 90]].concat())
    };
    (0..count).map(&mut entry).collect()
}

fn drain(mut sorted: Sorted) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut drained = Vec::new();
    while let Some((key, payload)) = sorted.next().unwrap() {
        drained.push((key.to_vec(), payload.to_vec()));
    }
    assert!(sorted.next().unwrap().is_none());
    drained
}

#[test]
fn entries_come_in_the_order_of_their_keys_and_equal_ones_as_they_came() {
    with_folder("order", |folder| {
        for count in [0, 1, 2, 17, 1000, 60_000] {
            let pushed = entries(count);
            let mut expected = pushed.clone();
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            let size = |(key, payload): &(Vec<u8>, Vec<u8>)| key.len() + payload.len() + size_of::<Entry>();
            let bytes: usize = pushed.iter().map(size).sum();
            for memory in [0, 10_000, 64 << 10, 64 << 20] {
                // A run of one entry each is slow, and tells nothing more for many.
                if memory == 0 && count > 1000 {
                    continue;
                }
                let mut sorter = Sorter::new(folder, memory);
                pushed
                    .iter()
                    .for_each(|(key, payload)| sorter.push(key, |to| work::put(payload, to)).unwrap());
                assert_eq!(sorter.is_spilled(), bytes > memory, "{count} in {memory}");
                assert!(drain(sorter.finish().unwrap()) == expected, "{count} in {memory}");
            }
        }
    });
}

#[test]
fn long_entries_are_read_few_at_a_time() {
    with_folder("long", |folder| {
        let mut sorter = Sorter::new(folder, 64 << 10);
        for number in (0..20_u8).rev() {
            sorter.push(&vec![number; 100_000], |to| work::put(&[number], to)).unwrap();
            assert!(sorter.fan_in() == FAN_IN_LONG);
        }
        let drained = drain(sorter.finish().unwrap());
        assert!(
            drained.iter().map(|entry| &entry.1[..]).eq((0..20_u8)
                .map(|number| [number])
                .collect::<Vec<_>>()
                .iter()
                .map(|one| &one[..]))
        );
    });
}

#[test]
fn a_limited_sorter_gives_the_first() {
    with_folder("limit", |folder| {
        let pushed = entries(20_000);
        let mut expected = pushed.clone();
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        for limit in [1, 10, 200, 9_000, 20_000, usize::MAX] {
            for memory in [64 << 10, 64 << 20] {
                let mut sorter = Sorter::limited(folder, memory, limit);
                pushed
                    .iter()
                    .for_each(|(key, payload)| sorter.push(key, |to| work::put(payload, to)).unwrap());
                let first = &expected[..limit.min(expected.len())];
                assert!(drain(sorter.finish().unwrap()) == first, "{limit} in {memory}");
            }
        }
    });
}

#[test]
fn what_is_left_half_way_gives_its_pages_back() {
    with_folder("half", |folder| {
        let pushed = entries(10_000);
        let mut sorter = Sorter::new(folder, 64 << 10);
        pushed.iter().for_each(|(key, payload)| sorter.push(key, |to| work::put(payload, to)).unwrap());
        assert!(sorter.is_spilled());
        let mut sorted = sorter.finish().unwrap();
        for _ in 0..5000 {
            assert!(sorted.next().unwrap().is_some());
        }
        drop(sorted);
        let mut sorter = Sorter::new(folder, 64 << 10);
        pushed.iter().for_each(|(key, payload)| sorter.push(key, |to| work::put(payload, to)).unwrap());
        drop(sorter);
    });
}

#[test]
fn a_large_memory_is_sorted_in_stretches() {
    with_folder("stretches", |folder| {
        // Two stretches whole and one in part, merged in two rounds; keys that are equal, too.
        let count = 2 * STRETCH as u64 + 1000;
        let key = |number: u64| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 50_000).to_be_bytes();
        let mut sorter = Sorter::new(folder, 1 << 30);
        let mut expected: Vec<_> = (0..count).map(|number| (key(number), number)).collect();
        for (key, number) in &expected {
            sorter.push(key, |to| work::put(&number.to_le_bytes(), to)).unwrap();
        }
        expected.sort();
        let mut sorted = sorter.finish().unwrap();
        for (key, number) in expected {
            assert_eq!(sorted.next().unwrap(), Some((&key[..], &number.to_le_bytes()[..])));
        }
        assert!(sorted.next().unwrap().is_none());
    });
}

#[test]
fn the_sort_of_a_large_memory_is_interrupted() {
    use runtime::fiber;
    use runtime::interrupt::{Interrupt, Reason};
    with_folder("interrupt", |folder| {
        let mut sorter = Sorter::new(folder, 1 << 30);
        for number in 0..3 * STRETCH as u64 {
            sorter.push(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), |_| Ok(())).unwrap();
        }
        let stop = Interrupt::new();
        fiber::obey(Some(Arc::clone(&stop)));
        stop.raise(Reason::Cancel);
        let code = sorter.finish().map(drop).unwrap_err().code;
        fiber::obey(None);
        assert_eq!(code.as_str(), "57014");
    });
}

#[test]
fn long_keys_in_memory_are_sorted_as_short_ones_and_each_is_compared_with_safe_points() {
    with_folder("long-keys", |folder| {
        // They differ at their ends alone, but for one, so that they have no beginning in common.
        let mut keys: Vec<Vec<u8>> =
            (0..7_u8).map(|number| [vec![7; 100_000], vec![number * 3 % 7]].concat()).collect();
        keys.extend([keys[2].clone(), vec![9]]);
        let filled = || {
            let mut sorter = Sorter::new(folder, 1 << 30);
            for (number, key) in keys.iter().enumerate() {
                sorter.push(key, |to| work::put(&[number as u8], to)).unwrap();
            }
            sorter
        };
        let mut sorter = filled();
        assert!(runtime::budget::within(1 << 16, || sorter.sort()).is_err());
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> =
            keys.iter().cloned().zip((0_u8..).map(|number| vec![number])).collect();
        expected.sort();
        assert_eq!(drain(filled().finish().unwrap()), expected);
    });
}
