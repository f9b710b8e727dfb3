//! Eviction, with pages that are pinned, latched or dirty, for many seeds.

use super::*;
use crate::frame::USAGE_MAX;

/// The hold on a page, and whether its file has its last change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Clean,
    Dirty,
    Pinned,
    Latched,
}

const KINDS: [Kind; 4] = [Kind::Clean, Kind::Dirty, Kind::Pinned, Kind::Latched];

/// A resident page as the test expects the sweep to treat it.
struct Page {
    number: PageNo,
    frame: u32,
    kind: Kind,
    usage: u8,
}

impl Page {
    fn is_resident(&self, pool: &Pool) -> bool {
        let entry = pool.entry(self.number).unwrap();
        Entry(entry.load(Ordering::Acquire)).frame() == Some(self.frame)
    }
}

/// Pages of random kinds and usage counts, in more than half of the frames.
fn pages(bench: &Bench, random: &mut Seeded) -> Vec<Page> {
    let frames = bench.pool.frames() as u64;
    let count = frames / 2 + random.below(frames / 2);
    (0..count).for_each(|index| bench.make(PageNo(index as u32), index));
    bench.run(|pool| {
        pool.flush_before(Lsn::MAX).unwrap();
        let page = |index: u64| {
            let number = PageNo(index as u32);
            let view = pool.get(number).unwrap();
            let kind = KINDS[random.below(4) as usize];
            if kind == Kind::Dirty {
                fill(&mut view.lock().unwrap(), index + 1, &bench.log);
            }
            let usage = random.below(u64::from(USAGE_MAX) + 1) as u8;
            pool.header(view.frame).set_usage(usage);
            Page { number, frame: view.frame, kind, usage }
        };
        (0..count).map(page).collect()
    })
}

/// One pass of the sweep on core 0. Returns the dirty frames that it found unused.
fn pass(pool: &Pool) -> Vec<u32> {
    let mut dirty = Vec::new();
    for _ in 0..pool.frames() {
        pool.look(0, &mut |frame, _| dirty.push(frame));
    }
    dirty
}

/// Each frame is visited once a pass. A page falls when its usage count is used up, unless it is
/// pinned, latched or dirty. A visit takes no usage from a page that is pinned or latched.
#[test]
fn a_page_falls_in_the_pass_that_its_usage_count_gives() {
    for seed in 1..=24_u64 {
        let mut random = Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let batch = [None, Some(1), Some(5), Some(16)][random.below(4) as usize];
        let bench = Bench::without_writers(&format!("passes-{seed}"), 64, batch);
        let pages = pages(&bench, &mut random);
        let of_kind = |kind| pages.iter().filter(move |page| page.kind == kind);
        bench.run(|pool| {
            let pins: Vec<Pinned<'_>> =
                of_kind(Kind::Pinned).map(|page| pool.pin(page.number).unwrap()).collect();
            // A pin counts as a use.
            pages.iter().for_each(|page| pool.header(page.frame).set_usage(page.usage));
            let latch = |page: &Page| {
                let latched = pool.get(page.number).unwrap().lock().unwrap();
                pool.header(page.frame).set_usage(page.usage);
                latched
            };
            let latches: Vec<PageMut<'_>> = of_kind(Kind::Latched).map(latch).collect();
            for passed in 1..=USAGE_MAX + 2 {
                let dirty: BTreeSet<u32> = pass(pool).into_iter().collect();
                for page in &pages {
                    let used_up = passed > page.usage;
                    let falls = page.kind == Kind::Clean && used_up;
                    assert_eq!(page.is_resident(pool), !falls, "seed {seed}, pass {passed}, {:?}", page.kind);
                    let reported = page.kind == Kind::Dirty && used_up;
                    assert_eq!(dirty.contains(&page.frame), reported, "seed {seed}, pass {passed}");
                }
            }
            drop((pins, latches));
            assert_eq!(pool.sweep.position().passes, u64::from(USAGE_MAX) + 2);
            let clean = of_kind(Kind::Clean).count();
            assert_eq!(pool.statistics().evictions, clean as u64);
            // The pages that were held have their whole usage count left.
            pool.flush_before(Lsn::MAX).unwrap();
            for passed in 1..=USAGE_MAX + 1 {
                pass(pool);
                for page in pages.iter().filter(|page| matches!(page.kind, Kind::Pinned | Kind::Latched)) {
                    assert_eq!(page.is_resident(pool), passed <= page.usage, "seed {seed}, pass {passed}");
                }
            }
            assert_eq!(pool.statistics().evictions, pages.len() as u64);
        });
    }
}

/// A frame is evicted only in the very state in which it was chosen, and only clean and unheld.
#[test]
fn a_frame_that_changed_since_it_was_chosen_is_not_evicted() {
    let bench = Bench::without_writers("chosen", 64, None);
    (0..4).for_each(|index| bench.make(PageNo(index), u64::from(index)));
    bench.run(|pool| {
        pool.flush_before(Lsn::MAX).unwrap();
        let choose = |index| {
            let page = pool.get(PageNo(index)).unwrap();
            (page.frame, page.seen)
        };
        let (frame, chosen) = choose(0);
        let pinned = pool.pin(PageNo(0)).unwrap();
        assert!(!pool.evict(frame, chosen), "pinned");
        drop(pinned);
        let latched = pool.get(PageNo(0)).unwrap().lock().unwrap();
        assert!(!pool.evict(frame, chosen), "latched");
        drop(latched);
        assert!(pool.evict(frame, chosen), "as it was chosen");
        assert!(!pool.evict(frame, chosen), "the frame has no page");
        let (frame, chosen) = choose(1);
        fill(&mut pool.pin(PageNo(1)).unwrap().lock().unwrap(), 7, &bench.log);
        assert!(!pool.evict(frame, chosen), "changed");
        let (frame, dirty) = choose(1);
        assert!(!pool.evict(frame, dirty), "dirty");
        pool.flush_before(Lsn::MAX).unwrap();
        let (frame, clean) = choose(1);
        assert!(pool.evict(frame, clean));
        assert_eq!(pool.statistics().evictions, 2);
        assert_eq!(read(pool, PageNo(1)), Ok(7), "the file has the change");
    });
}

#[test]
fn each_frame_handed_out_is_counted_once() {
    let bench = Bench::new("allocations", 64);
    const PAGES: u32 = 300;
    (0..PAGES).for_each(|index| bench.make(PageNo(index), u64::from(index)));
    assert_eq!(bench.pool.statistics().allocations, u64::from(PAGES), "one for each new page");
    bench
        .run(|pool| (0..PAGES).for_each(|index| assert_eq!(read(pool, PageNo(index)), Ok(u64::from(index)))));
    let statistics = bench.pool.statistics();
    assert_eq!(statistics.allocations, u64::from(PAGES) + statistics.loads);
    // A page in memory holds a frame that was handed out and not taken back.
    assert!(statistics.allocations - statistics.evictions <= bench.pool.frames() as u64);
}
