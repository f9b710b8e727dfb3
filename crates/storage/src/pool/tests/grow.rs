//! A pool that comes into use little by little.

use super::*;

const FRAMES: usize = 4096;

/// Makes pages of these numbers, each filled with its own.
fn make_all(bench: &Bench, pages: std::ops::Range<usize>) {
    bench.run(|pool| {
        for index in pages {
            pool.reserve(1).unwrap();
            let mut page = pool.create(PageNo(index as u32), PageKind::Leaf, 1, 0);
            fill(&mut page, index as u64, &bench.log);
        }
    });
}

#[test]
fn frames_come_into_use_as_they_are_asked_for() {
    let bench = Bench::new("grow", FRAMES);
    assert_eq!(bench.pool.in_use().count(), 0);
    let mut made = 0;
    for pages in [1, 200, 300, 1000] {
        make_all(&bench, made..pages);
        made = pages;
        let in_use = bench.pool.in_use().count();
        assert!((pages..pages + FRAMES / 8).contains(&in_use), "{in_use} frames for {pages} pages");
    }
    assert!(!bench.pool.growth.is_whole());
}

#[test]
fn nothing_is_evicted_or_written_while_unused_frames_are_left() {
    let bench = Bench::new("no-sweep", FRAMES);
    make_all(&bench, 0..FRAMES);
    assert_eq!(bench.pool.in_use().count(), FRAMES);
    let statistics = bench.pool.statistics();
    assert_eq!((statistics.evictions, statistics.writes, statistics.passes), (0, 0, 0));
    assert_eq!(bench.pool.sweep.position().hand, 0, "the sweep has not begun");
    make_all(&bench, FRAMES..FRAMES + 100);
    assert!(bench.pool.statistics().evictions >= 100);
}

#[test]
fn a_checkpoint_writes_the_changed_pages_of_a_pool_in_partial_use() {
    let bench = Bench::new("part-flush", FRAMES);
    make_all(&bench, 0..700);
    bench.run(|pool| pool.flush_before(Lsn::MAX).unwrap());
    assert_eq!(bench.pool.statistics().writes, 700);
    assert!(bench.pool.in_use().all(|(_, header)| !header.is_dirty()));
    bench.run(|pool| {
        (0..700).for_each(|index| forget(pool, PageNo(index)));
        (0..700).for_each(|index| assert_eq!(read(pool, PageNo(index)), Ok(u64::from(index))));
    });
    assert_eq!(bench.pool.statistics().evictions, 0, "the pages were dropped, not evicted");
}

#[test]
fn all_cores_together_use_every_frame_once() {
    let bench = Bench::new("grow-race", FRAMES);
    bench.in_fibers(8, |fiber, pool, _| {
        let (core, mut taken) = (runtime::core(), Vec::new());
        // Half of the frames, so that no fiber waits.
        while taken.len() < FRAMES / 16 {
            taken.extend(pool.find_frame(core));
            if taken.len().is_multiple_of(16) {
                runtime::fiber::yield_now();
            }
        }
        // Each frame has the page of its taker: two takers of a frame would meet here.
        for &frame in &taken {
            let hold = pool.give(frame, PageNo(fiber as u32));
            pool.header(frame).latch.unlock_changed(hold);
        }
        for &frame in &taken {
            assert_eq!(pool.header(frame).page_no(), PageNo(fiber as u32));
        }
    });
    let used = bench.pool.in_use().filter(|(_, header)| header.page_no() != PageNo::NONE).count();
    assert_eq!(used, FRAMES / 2);
}
