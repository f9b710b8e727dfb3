//! The pool on real files, in fibers of a small runtime.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use runtime::{Options, Runtime};
use sync::SpinLock;
use sync::atomic::AtomicU64;

use super::*;
use crate::datafile::Opening;
use crate::page::{Damage, HEADER_SIZE};

mod evict;
mod grow;

const CORES: usize = 2;

/// A log that is only a position. A wait makes it durable at once, unless the log is set to fail.
struct TestLog {
    position: AtomicU64,
    durable: AtomicU64,
    failing: AtomicBool,
    waits: SpinLock<Vec<Lsn>>,
}

impl TestLog {
    fn new() -> TestLog {
        TestLog {
            position: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            waits: SpinLock::new(&"test", Vec::new()),
        }
    }

    fn append(&self) -> Lsn {
        Lsn(self.position.fetch_add(100, Ordering::AcqRel) + 100)
    }
}

impl PageLog for TestLog {
    fn position(&self) -> Lsn {
        Lsn(self.position.load(Ordering::Acquire))
    }

    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    fn wait_durable(&self, lsn: Lsn) -> Result<(), Error> {
        if self.failing.load(Ordering::Acquire) {
            return Err(Error::io("writing the log", &std::io::ErrorKind::StorageFull.into()));
        }
        self.waits.lock().push(lsn);
        self.durable.fetch_max(lsn.0, Ordering::AcqRel);
        Ok(())
    }
}

struct Bench {
    runtime: Arc<Runtime>,
    pool: Arc<Pool>,
    log: Arc<TestLog>,
    folder: PathBuf,
}

impl Bench {
    fn new(name: &str, frames: usize) -> Bench {
        let bench = Bench::without_writers(name, frames, None);
        bench.pool.start_writers(&bench.runtime);
        bench
    }

    /// A pool whose frames only the test evicts.
    fn without_writers(name: &str, frames: usize, sweep_batch: Option<usize>) -> Bench {
        let folder = std::env::temp_dir().join(format!("allcore-pool-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let runtime =
            Runtime::start(Options { cores: Some(CORES), pin: false, ..Options::default() }).unwrap();
        let log = Arc::new(TestLog::new());
        let open = |file| DataFile::open(&folder.join(file), Opening::New).unwrap();
        let options = PoolOptions { frames, cores: CORES, sweep_batch, huge_pages: HugePages::Off };
        let (pages, temporary) = (open("pages"), open("temp"));
        let pool = runtime.call(0, || {
            pages.grow(4096).unwrap();
            temporary.grow(4096).unwrap();
            let log = Arc::clone(&log) as Arc<dyn PageLog>;
            Pool::new(options, runtime.workers(), pages, temporary, log).unwrap()
        });
        Bench { runtime, pool, log, folder }
    }

    fn run<R: Send>(&self, body: impl FnOnce(&Arc<Pool>) -> R + Send) -> R {
        self.runtime.call(0, || body(&self.pool))
    }

    /// Makes a page whose words all hold `value`.
    fn make(&self, page_no: PageNo, value: u64) {
        self.run(|pool| {
            pool.reserve(1).unwrap();
            let mut page = pool.create(page_no, PageKind::Leaf, 1, 0);
            fill(&mut page, value, &self.log);
        });
    }

    /// Runs `body` in `fibers` fibers spread over the cores, and waits for all.
    fn in_fibers(&self, fibers: usize, body: impl Fn(usize, &Pool, &TestLog) + Send + Sync + 'static) {
        let body = Arc::new(body);
        let ended = Arc::new(AtomicUsize::new(0));
        for fiber in 0..fibers {
            let (body, ended) = (Arc::clone(&body), Arc::clone(&ended));
            let (pool, log) = (Arc::clone(&self.pool), Arc::clone(&self.log));
            self.runtime.spawn(fiber % CORES, move || {
                body(fiber, &pool, &log);
                ended.fetch_add(1, Ordering::AcqRel);
            });
        }
        let start = Instant::now();
        while ended.load(Ordering::Acquire) < fibers {
            assert!(start.elapsed() < Duration::from_secs(60), "fibers hang or died");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.run(|pool| pool.stop_writers());
        self.runtime.shutdown();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn fill(page: &mut PageMut<'_>, value: u64, log: &TestLog) {
    let logged = !page.page_no().is_temporary();
    let bytes = page.bytes_mut();
    bytes[HEADER_SIZE..].as_chunks_mut::<8>().0.iter_mut().for_each(|word| *word = value.to_le_bytes());
    if logged {
        page.set_lsn(log.append());
    }
}

/// The one value in all words of the page.
fn value_of(bytes: &[u8]) -> u64 {
    let words: BTreeSet<u64> =
        bytes[HEADER_SIZE..].as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    assert_eq!(words.len(), 1, "a torn page: {words:?}");
    *words.first().unwrap()
}

/// Reads a page as readers do: optimistically, loading it when it is missing.
fn read(pool: &Pool, page_no: PageNo) -> Result<u64, Error> {
    let mut copy = vec![0; PAGE_SIZE];
    loop {
        match pool.get(page_no) {
            Ok(page) => {
                page.bytes().copy_all(&mut copy);
                if page.validate().is_ok() {
                    assert_eq!(page::page_no(&copy), page_no);
                    return Ok(value_of(&copy));
                }
            }
            Err(miss) => pool.resolve(page_no, miss)?,
        }
    }
}

/// Drops a clean page from memory, so that the next look reads the file.
fn forget(pool: &Pool, page_no: PageNo) {
    assert!(!pool.get(page_no).is_ok_and(|page| pool.header(page.frame).is_dirty()));
    pool.discard(page_no);
    assert_eq!(pool.get(page_no).err(), Some(Miss::Absent));
}

struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn pages_survive_eviction_under_load() {
    const PAGES: u64 = 600;
    let bench = Bench::new("stress", 64);
    // Half of the pages are temporary.
    let number = |index: u64| match index % 2 {
        0 => PageNo(index as u32),
        _ => PageNo::temporary(index as u32),
    };
    (0..PAGES).for_each(|index| bench.make(number(index), 1));
    let expected: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(1)).collect();
    let expected = Arc::new(expected);
    let model = Arc::clone(&expected);
    bench.in_fibers(8, move |fiber, pool, log| {
        let mut random = Seeded(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(fiber as u64 + 1));
        for _ in 0..1500 {
            let index = random.below(PAGES);
            let page_no = number(index);
            if random.below(3) == 0 {
                let pinned = pool.pin(page_no).unwrap();
                let mut page = pinned.lock_yielding();
                let value = value_of(page.bytes());
                assert_eq!(
                    value,
                    model[index as usize].load(Ordering::Acquire),
                    "page {page_no} lost a change"
                );
                fill(&mut page, value + 1, log);
                model[index as usize].store(value + 1, Ordering::Release);
            } else {
                let before = model[index as usize].load(Ordering::Acquire);
                assert!(read(pool, page_no).unwrap() >= before, "page {page_no} went back");
            }
        }
    });
    let statistics = bench.pool.statistics();
    assert!(
        statistics.evictions > 1000 && statistics.writes > 100 && statistics.loads > 1000,
        "{statistics:?}"
    );
    assert_eq!(statistics.write_failures, 0);
    bench.run(|pool| {
        for index in 0..PAGES {
            assert_eq!(read(pool, number(index)).unwrap(), expected[index as usize].load(Ordering::Acquire));
        }
        pool.flush_before(Lsn::MAX).unwrap();
    });
    // The page on disk is whole, and its log is durable.
    let file = fs::File::open(bench.folder.join("pages")).unwrap();
    let mut bytes = vec![0; PAGE_SIZE];
    for index in (0..PAGES).step_by(2) {
        file.read_exact_at(&mut bytes, number(index).offset()).unwrap();
        assert_eq!(page::verify(&bytes, number(index)), Ok(()));
        assert_eq!(value_of(&bytes), expected[index as usize].load(Ordering::Acquire));
        assert!(page::lsn(&bytes) <= bench.log.durable());
    }
}

#[test]
fn concurrent_loads_share_one_read() {
    let bench = Bench::new("share", 128);
    bench.make(PageNo(9), 77);
    bench.run(|pool| {
        pool.flush_before(Lsn::MAX).unwrap();
        forget(pool, PageNo(9));
    });
    bench.in_fibers(16, |_, pool, _| assert_eq!(read(pool, PageNo(9)).unwrap(), 77));
    assert_eq!(bench.pool.statistics().loads, 1);
}

#[test]
fn a_damaged_page_fails_its_readers_until_it_is_repaired() {
    let bench = Bench::new("damage", 128);
    bench.make(PageNo(9), 77);
    bench.make(PageNo(10), 78);
    bench.run(|pool| pool.flush_before(Lsn::MAX).unwrap());
    let file = fs::OpenOptions::new().read(true).write(true).open(bench.folder.join("pages")).unwrap();
    let flip = |page_no: PageNo| {
        let mut byte = [0];
        let at = page_no.offset() + 5000;
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 0x40], at).unwrap();
        file.sync_all().unwrap();
    };
    bench.run(|pool| forget(pool, PageNo(9)));
    flip(PageNo(9));
    let corrupt = Err(Error::Corrupt { page: PageNo(9), what: Damage::Checksum.what() });
    bench.run(|pool| {
        assert_eq!(read(pool, PageNo(9)), corrupt);
        assert_eq!(read(pool, PageNo(9)), corrupt, "each try reads again");
        assert_eq!(read(pool, PageNo(10)), Ok(78), "only that page fails");
    });
    flip(PageNo(9));
    bench.run(|pool| assert_eq!(read(pool, PageNo(9)), Ok(77)));
}

#[test]
fn pages_read_ahead_come_at_once_and_damage_is_left_to_be_reported() {
    let bench = Bench::new("ahead", 256);
    let pages: Vec<PageNo> = (20..40).map(PageNo).collect();
    pages.iter().for_each(|&page_no| bench.make(page_no, u64::from(page_no.0)));
    bench.run(|pool| {
        pool.flush_before(Lsn::MAX).unwrap();
        pages[1..].iter().for_each(|&page_no| forget(pool, page_no));
    });
    let file = fs::OpenOptions::new().write(true).open(bench.folder.join("pages")).unwrap();
    file.write_all_at(&[0xff; 9], PageNo(33).offset() + 700).unwrap();
    // Some were never written, and one lies beyond the file's end.
    let asked: Vec<PageNo> = (18..44).chain([4_000_000]).map(PageNo).collect();
    bench.run(|pool| {
        let before = pool.statistics();
        pool.load_ahead(&asked);
        let after = pool.statistics();
        assert_eq!((after.loads - before.loads, after.reads - before.reads), (18, 1));
        for &page_no in pages.iter().filter(|page_no| page_no.0 != 33) {
            assert!(pool.get(page_no).is_ok_and(|page| page.validate().is_ok()), "{page_no:?}");
            assert_eq!(read(pool, page_no), Ok(u64::from(page_no.0)));
        }
        assert_eq!(pool.statistics().reads, after.reads, "nothing more was read");
        let corrupt = Err(Error::Corrupt { page: PageNo(33), what: Damage::Checksum.what() });
        assert_eq!(read(pool, PageNo(33)), corrupt);
    });
}

/// A panic ends its session alone: here that of a fiber that may not park, since it holds a latch.
#[test]
fn a_load_that_panics_leaves_its_page_and_frame_to_others() {
    let bench = Bench::new("panic", 128);
    bench.make(PageNo(9), 77);
    bench.run(|pool| {
        pool.flush_before(Lsn::MAX).unwrap();
        forget(pool, PageNo(9));
        let free = || (0..CORES).map(|core| pool.free.len(core)).sum::<u32>();
        let before = free();
        let latch = SpinLock::new(&"test", ());
        for ahead in [false, true] {
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _held = latch.lock();
                match ahead {
                    true => pool.load_ahead(&[PageNo(9)]),
                    false => pool.load(PageNo(9)).unwrap(),
                }
            }));
            assert!(panicked.is_err());
            assert_eq!(free(), before);
        }
        assert_eq!(read(pool, PageNo(9)), Ok(77));
    });
}

#[test]
fn reading_ahead_and_loading_the_same_pages_agree() {
    let bench = Bench::new("ahead-race", 128);
    (20..120).for_each(|number| bench.make(PageNo(number), u64::from(number)));
    bench.in_fibers(8, |fiber, pool, _| {
        let mut random = Seeded(fiber as u64 + 1);
        for _ in 0..300 {
            let first = 20 + random.below(90) as u32;
            let pages: Vec<PageNo> = (first..first + 10).map(PageNo).collect();
            pool.load_ahead(&pages);
            for page_no in pages {
                assert_eq!(read(pool, page_no), Ok(u64::from(page_no.0)));
            }
        }
    });
}

#[test]
fn pages_that_were_never_written_are_an_error_except_to_recovery() {
    let bench = Bench::new("never", 128);
    bench.run(|pool| {
        let never = |page| Err(Error::Corrupt { page, what: Damage::NeverWritten.what() });
        for page_no in [PageNo(50), PageNo(100_000)] {
            assert_eq!(read(pool, page_no), never(page_no));
            pool.load_or_zero(page_no).unwrap();
            assert_eq!(pool.pin(page_no).unwrap().lock().unwrap().bytes(), [0; PAGE_SIZE]);
        }
        let beyond = PageNo(PageNo::TEMPORARY - 1);
        assert_eq!(read(pool, beyond), Err(Error::Corrupt { page: beyond, what: "no such page" }));
    });
}

#[test]
fn a_pool_without_a_free_frame_says_so() {
    let bench = Bench::new("full", FRAMES_MIN_PER_CORE * CORES);
    let frames = bench.pool.frames() as u32;
    (0..=frames).for_each(|index| bench.make(PageNo(index), u64::from(index)));
    bench.run(|pool| {
        let mut pins = Vec::new();
        let failed = loop {
            match pool.pin(PageNo(pins.len() as u32)) {
                Ok(pin) => pins.push(pin),
                Err(error) => break error,
            }
        };
        assert_eq!(failed, Error::NoFrames);
        assert_eq!(pins.len(), frames as usize);
        pins.truncate(frames as usize - 1);
        assert_eq!(read(pool, PageNo(frames)), Ok(u64::from(frames)));
    });
}

#[test]
fn failed_writes_lose_nothing() {
    let bench = Bench::new("failing", FRAMES_MIN_PER_CORE * CORES);
    let pages = bench.pool.frames() as u32 / 2;
    (0..pages).for_each(|index| bench.make(PageNo(index), u64::from(index)));
    bench.log.failing.store(true, Ordering::Release);
    bench.run(|pool| {
        assert!(matches!(pool.flush_before(Lsn::MAX), Err(Error::DiskFull(_))));
        assert!(pool.statistics().write_failures > 0);
    });
    // All pages are unwritable: a fiber that needs a frame gets the reason.
    let outcome = bench.run(|pool| {
        (pages..).try_for_each(|index| {
            pool.reserve(1)?;
            fill(&mut pool.create(PageNo(index), PageKind::Leaf, 1, 0), u64::from(index), &bench.log);
            Ok(())
        })
    });
    assert!(matches!(outcome, Err(Error::DiskFull(_))), "{outcome:?}");
    bench.log.failing.store(false, Ordering::Release);
    bench.run(|pool| {
        pool.flush_before(Lsn::MAX).unwrap();
        (0..pages).for_each(|index| assert_eq!(read(pool, PageNo(index)), Ok(u64::from(index))));
    });
}

#[test]
fn the_log_is_durable_before_the_page_and_temporary_pages_need_no_log() {
    let bench = Bench::new("wal", 128);
    bench.make(PageNo(3), 1);
    bench.make(PageNo::temporary(3), 2);
    let redo = bench.log.position();
    bench.make(PageNo(4), 1);
    bench.run(|pool| {
        pool.flush_before(redo).unwrap();
        assert!(bench.log.waits.lock().contains(&redo), "page 3 waited for its record");
        let is_dirty = |page_no| pool.header(pool.get(page_no).unwrap().frame).is_dirty();
        assert!(!is_dirty(PageNo(3)));
        assert!(is_dirty(PageNo(4)), "changed after the checkpoint began");
        assert!(is_dirty(PageNo::temporary(3)), "no checkpoint's business");
    });
}

#[test]
fn a_freed_page_is_dropped_and_its_number_used_again() {
    let bench = Bench::new("reuse", 128);
    bench.make(PageNo(7), 1);
    bench.run(|pool| {
        let old = pool.get(PageNo(7)).unwrap();
        pool.discard(PageNo(7));
        assert_eq!(old.validate(), Err(Restart));
        assert_eq!(pool.get(PageNo(7)).err(), Some(Miss::Absent));
    });
    assert_eq!(bench.pool.statistics().writes, 0);
    bench.make(PageNo(7), 2);
    // The page is created again without having been dropped, so it keeps its frame.
    let frame = bench.run(|pool| pool.get(PageNo(7)).unwrap().frame());
    bench.make(PageNo(7), 3);
    bench.run(|pool| {
        assert_eq!(pool.get(PageNo(7)).unwrap().frame(), frame);
        assert_eq!(read(pool, PageNo(7)), Ok(3));
    });
}

#[test]
fn a_page_created_while_it_is_loaded_is_the_new_one() {
    let bench = Bench::new("override", 128);
    bench.make(PageNo(7), 1);
    bench.run(|pool| {
        pool.flush_before(Lsn::MAX).unwrap();
        forget(pool, PageNo(7));
        let entry = pool.entry(PageNo(7)).unwrap();
        // A load that has not ended yet.
        let frame = pool.take_frame().unwrap();
        let loading = load::Loading::begin(pool, PageNo(7), entry, Entry::ABSENT, frame).unwrap();
        pool.reserve(1).unwrap();
        fill(&mut pool.create(PageNo(7), PageKind::Leaf, 1, 0), 2, &bench.log);
        pool.load_into(loading, load::OnDamage::Fail).unwrap();
        assert_eq!(read(pool, PageNo(7)), Ok(2));
    });
}
