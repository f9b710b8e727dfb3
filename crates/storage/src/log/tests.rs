//! Tests of the log: appended records are read back in order and whole, and no other bytes are
//! taken for a record.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::PathBuf;
use sync::atomic::{AtomicU64 as Count, Ordering as Order};

use super::record::{Head, PartForm};
use super::*;
use crate::page::{PAGE_SIZE, PageNo};

mod damage;

thread_local! {
    static CORE: Cell<Option<usize>> = const { Cell::new(None) };
}

pub(super) fn core_of_this_thread() -> Option<usize> {
    CORE.get()
}

/// Makes this thread append as `core`: one thread for each core at a time.
pub(crate) fn act_as_core(core: usize) {
    CORE.set(Some(core));
}

/// A folder that goes when the test ends.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        static NEXT: Count = Count::new(0);
        let number = NEXT.fetch_add(1, Order::Relaxed);
        let path = std::env::temp_dir().join(format!("allcore-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn copy(&self) -> Folder {
        let to = Folder::new("copy");
        std::fs::create_dir_all(to.path().join(LOG_FOLDER)).unwrap();
        for from in [self.0.clone(), self.0.join(LOG_FOLDER)] {
            for entry in std::fs::read_dir(&from).unwrap().flatten().filter(|entry| entry.path().is_file()) {
                let inside = entry.path().strip_prefix(&self.0).unwrap().to_owned();
                match std::fs::copy(entry.path(), to.path().join(inside)) {
                    // A segment may have got its name since the folder was listed.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    copied => drop(copied.unwrap()),
                }
            }
        }
        to
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn small(cores: usize) -> WalOptions {
    WalOptions {
        segment_bytes: 1 << 20,
        ring_bytes: 1 << 20,
        checkpoint_bytes: 3 << 20,
        ..WalOptions::new(cores)
    }
}

/// Random numbers that a seed repeats.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

struct TestPage {
    number: PageNo,
    bytes: Vec<u8>,
}

impl TestPage {
    fn new(number: u32, lsn: u64) -> TestPage {
        let mut page = TestPage { number: PageNo(number), bytes: vec![number as u8; PAGE_SIZE] };
        page.set_page_lsn(Lsn(lsn));
        page
    }
}

impl LoggedPage for TestPage {
    fn page_no(&self) -> PageNo {
        self.number
    }
    fn page_lsn(&self) -> Lsn {
        crate::page::lsn(&self.bytes)
    }
    fn image(&self) -> &[u8] {
        &self.bytes
    }
    fn set_page_lsn(&mut self, lsn: Lsn) {
        crate::page::set_lsn(&mut self.bytes, lsn);
    }
}

/// A record and its expected content.
struct Sample {
    bytes: Vec<u8>,
    /// Page, op, payload.
    parts: Vec<(u32, u8, Vec<u8>)>,
    undo: Vec<u8>,
    link: TxnLink,
}

/// An image without its hole restores the page with zeros there, whatever the page was. A
/// nonsensical image is refused.
#[test]
fn images_leave_their_hole_out() {
    let mut random = Random(11);
    for hole in [0..0, 100..100, 100..8000, 0..PAGE_SIZE, 32..PAGE_SIZE, 5000..PAGE_SIZE] {
        let mut page = random.bytes(PAGE_SIZE);
        let mut buffer = Vec::new();
        record::begin(&mut buffer);
        record::add_image(&mut buffer, PageNo(7), 3, &page, hole.clone());
        let head = Head { kind: Kind::Change, pages: 1, undo_length: 0, link: TxnLink::NONE };
        let sealed = record::seal(&mut buffer, head, 5);
        assert!(buffer.len() < PAGE_SIZE - hole.len() + 80, "{hole:?}: {}", buffer.len());
        record::place(&mut buffer, &sealed, 4096, Kind::Change);
        let read = Record::parse(&buffer, 4096, 5).expect("a record");
        let part = read.parts().next().expect("a part");
        let mut restored = random.bytes(PAGE_SIZE);
        assert!(part.is_image() && part.restore(&mut restored));
        page[hole.clone()].fill(0);
        assert!(restored == page, "{hole:?}");
        // A hole that begins behind the bytes.
        let at = record::HEADER + record::PART_HEADER;
        let mut bad = buffer[..].to_vec();
        bad[at..at + 2].copy_from_slice(&u16::MAX.to_le_bytes());
        let sealed = {
            bad.truncate(bad.len() - record::TRAILER);
            record::seal(&mut bad, head, 5)
        };
        record::place(&mut bad, &sealed, 4096, Kind::Change);
        assert!(Record::parse(&bad, 4096, 5).is_none(), "{hole:?}");
    }
}

fn sealed_record(random: &mut Random, position: u64, salt: u32) -> Sample {
    let mut buffer = Vec::new();
    record::begin(&mut buffer);
    let mut parts = Vec::new();
    for _ in 0..random.below(5) {
        let (image, length) = (random.below(4) == 0, random.below(300));
        let length = if image { 2 + random.below(PAGE_SIZE + 1) } else { length };
        let mut payload = random.bytes(length);
        if image {
            let start = random.below(payload.len() - 1) as u16;
            payload[..2].copy_from_slice(&start.to_le_bytes());
        }
        let (page, op) = (random.next() as u32, random.next() as u8);
        let form = if image { PartForm::Image } else { PartForm::Op };
        let middle = payload.len() / 2;
        record::add_part(&mut buffer, PageNo(page), op, form, &[&payload[..middle], &payload[middle..]]);
        parts.push((page, op, payload));
    }
    let link = TxnLink {
        txn: random.next() >> 16,
        prev: Lsn(random.next() >> 8),
        compensation: (random.below(3) == 0).then(|| Lsn(random.next() >> 8)),
    };
    let length = random.below(200);
    let undo = match link.compensation {
        Some(next) => next.0.to_le_bytes().to_vec(),
        None => random.bytes(length),
    };
    buffer.extend_from_slice(&undo);
    let head = Head { kind: Kind::Change, pages: parts.len() as u8, undo_length: undo.len() as u32, link };
    let sealed = record::seal(&mut buffer, head, salt);
    record::place(&mut buffer, &sealed, position, Kind::Change);
    let undo = if link.compensation.is_some() { Vec::new() } else { undo };
    Sample { bytes: buffer, parts, undo, link }
}

#[test]
fn records_read_back_and_damaged_ones_do_not() {
    let mut random = Random(1);
    for round in 0..300 {
        let (position, salt) = (random.next() >> 8 & !7, random.next() as u32);
        let Sample { bytes, parts, undo, link } = sealed_record(&mut random, position, salt);
        let found = Record::parse(&bytes, position, salt).expect("a record");
        assert_eq!(
            (found.link(), found.undo(), found.lsn().0),
            (link, &undo[..], position + bytes.len() as u64)
        );
        let read: Vec<_> = found.parts().map(|part| (part.page.0, part.op, part.payload.to_vec())).collect();
        assert_eq!(read, parts);
        assert!(Record::parse(&bytes, position + 8, salt).is_none(), "another position");
        assert!(Record::parse(&bytes, position, salt ^ 1).is_none(), "another folder's salt");
        assert!(Record::parse(&bytes[..bytes.len() - 1], position, salt).is_none(), "cut short");
        for _ in 0..if round < 20 { 200 } else { 20 } {
            let mut bad = bytes.clone();
            let at = random.below(bad.len());
            bad[at] ^= 1 << random.below(8);
            assert!(Record::parse(&bad, position, salt).is_none(), "byte {at} of {} flipped", bytes.len());
        }
    }
}

fn reader(folder: &Folder) -> LogReader {
    let control = ControlFile::open(folder.path()).unwrap().1;
    LogReader::new(&folder.path().join(LOG_FOLDER), control.segment_bytes, control.salt, control.floor)
        .unwrap()
}

/// All records but void ones, as (transaction, kind, undo bytes), and the log's end.
fn contents(folder: &Folder) -> (Vec<(u64, Kind, Vec<u8>)>, Lsn) {
    let mut reader = reader(folder);
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        if record.kind() != Kind::Void {
            found.push((record.link().txn, record.kind(), record.undo().to_vec()));
        }
    }
    (found, reader.position())
}

fn append_change(wal: &Wal, txn: u64, prev: Lsn, undo: &[u8]) -> Lsn {
    wal.ensure(undo.len()).unwrap();
    let mut change = wal.change();
    change.undo(undo);
    change.commit(TxnLink { txn, prev, compensation: None })
}

#[test]
fn concurrent_appends_are_read_back_complete_and_in_order() {
    const CORES: usize = 4;
    const RECORDS: u64 = 6000;
    let folder = Folder::new("concurrent");
    let wal = Wal::create(folder.path(), small(CORES)).unwrap();
    // The end of each core's last record.
    let ends: Vec<Lsn> = std::thread::scope(|scope| {
        let append = |core: usize| {
            let wal = &wal;
            scope.spawn(move || {
                act_as_core(core);
                let mut random = Random(core as u64);
                let mut prev = Lsn::ZERO;
                for number in 0..RECORDS {
                    let length = 8 + random.below(if number % 500 == 0 { 50_000 } else { 400 });
                    let mut undo = vec![core as u8; length];
                    undo[..8].copy_from_slice(&number.to_le_bytes());
                    prev = append_change(wal, core as u64 + 1, prev, &undo);
                    if number % 97 == 0 {
                        wal.wait_durable(prev).unwrap();
                        assert!(
                            wal.durable() >= prev
                                && wal.durable() <= wal.filled()
                                && wal.filled() <= wal.position()
                        );
                    }
                }
                wal.wait_durable(prev).unwrap();
                prev
            })
        };
        let appenders: Vec<_> = (0..CORES).map(append).collect();
        appenders.into_iter().map(|appender| appender.join().unwrap()).collect()
    });
    let (found, end) = contents(&folder);
    assert_eq!(end, wal.position());
    let mut next: HashMap<u64, u64> = HashMap::new();
    for (txn, kind, undo) in found {
        assert_eq!(kind, Kind::Change);
        let number = next.entry(txn).or_default();
        assert_eq!(undo[..8], number.to_le_bytes(), "record of core {}", txn - 1);
        assert!(undo[8..].iter().all(|byte| u64::from(*byte) + 1 == txn));
        *number += 1;
    }
    assert!(next.len() == CORES && next.values().all(|count| *count == RECORDS));
    // A core's records again, backwards.
    let mut reader = reader(&folder);
    let mut lsn = ends[1];
    let mut count = 0;
    while lsn != Lsn::ZERO {
        let record = reader.record_ending_at(lsn).unwrap().expect("a record ends there");
        assert_eq!((record.lsn(), record.link().txn), (lsn, 2));
        lsn = record.link().prev;
        count += 1;
    }
    assert_eq!(count, RECORDS);
}

#[test]
fn credit_and_position_add_up() {
    let folder = Folder::new("credit");
    let wal = Wal::create(folder.path(), small(2)).unwrap();
    act_as_core(0);
    for number in 0..5000 {
        append_change(&wal, 1, Lsn::ZERO, &[7; 300]);
        if number % 100 == 0 {
            wal.wait_durable(wal.position()).unwrap();
        }
        let credit = wal.with_core(|_, state| state.credit);
        assert_eq!(wal.position().0 + credit, wal.granted.load(Order::Relaxed));
    }
}

#[test]
fn commit_hook_runs_before_the_watermark_passes() {
    let folder = Folder::new("hook");
    let wal = Wal::create(folder.path(), small(2)).unwrap();
    act_as_core(0);
    wal.ensure_reserved(0).unwrap();
    let mut seen = None;
    let lsn = wal.append_commit(9, Lsn::ZERO, |lsn| seen = Some((lsn, wal.filled())));
    let (reserved, filled) = seen.expect("it ran");
    assert!(reserved == lsn && filled < lsn && wal.filled() == lsn);
}

#[test]
fn durable_callback_comes_before_the_waiters() {
    let folder = Folder::new("callback");
    let wal = Wal::create(folder.path(), small(1)).unwrap();
    let told = Arc::new(Count::new(0));
    let tell = told.clone();
    wal.on_durable(move |lsn| tell.store(lsn.0, Order::SeqCst));
    act_as_core(0);
    for _ in 0..50 {
        let lsn = append_change(&wal, 1, Lsn::ZERO, &[1; 100]);
        wal.wait_durable(lsn).unwrap();
        assert!(told.load(Order::SeqCst) >= lsn.0);
    }
    let lsn = append_change(&wal, 1, Lsn::ZERO, &[1; 100]);
    wal.request_flush();
    assert!(wal.durable() >= lsn, "a thread that is no worker flushes itself");
}

#[test]
fn first_change_after_a_checkpoint_begins_carries_the_image() {
    let folder = Folder::new("epoch");
    let wal = Wal::create(folder.path(), small(1)).unwrap();
    act_as_core(0);
    let mut page = TestPage::new(5, 0);
    let change = |page: &mut TestPage, fill: u8| {
        wal.ensure(100).unwrap();
        page.bytes[100..200].fill(fill);
        let mut change = wal.change();
        change.page(page, 40, &[&[fill; 3]]);
        change.commit(TxnLink::NONE)
    };
    change(&mut page, 1);
    change(&mut page, 2);
    wal.begin_epoch();
    change(&mut page, 3);
    change(&mut page, 4);
    // A checkpoint begins between the start of a change and its commit: void record, then the
    // image.
    wal.ensure(100).unwrap();
    page.bytes[100..200].fill(5);
    let mut late = wal.change();
    late.page(&mut page, 40, &[&[5; 3]]);
    late.undo(b"undo");
    wal.begin_epoch();
    let lsn = late.commit(TxnLink { txn: 3, prev: Lsn::ZERO, compensation: Some(Lsn(77)) });
    assert_eq!(page.page_lsn(), lsn);
    wal.wait_durable(lsn).unwrap();
    let mut reader = reader(&folder);
    let mut forms = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let part = record.parts().next().expect("one page");
        forms.push((record.kind(), part.is_image()));
        if part.is_image() {
            assert_eq!(part.payload[102..202], [part.payload[102]; 100]);
        }
        if record.lsn() == lsn {
            assert_eq!(record.link().compensation, Some(Lsn(77)));
            assert_eq!(part.payload[102], 5);
        }
    }
    let expected = [(Kind::Change, true), (Kind::Change, false), (Kind::Change, true), (Kind::Change, false)];
    assert_eq!(forms[..4], expected);
    assert_eq!(forms[4..], [(Kind::Void, false), (Kind::Change, true)]);
}

#[test]
fn epochs_begin_while_cores_append() {
    const CORES: usize = 3;
    let folder = Folder::new("epochs");
    let wal = Wal::create(folder.path(), small(CORES)).unwrap();
    let redos = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CORES)
            .map(|core| {
                let wal = &wal;
                scope.spawn(move || {
                    act_as_core(core);
                    let mut page = TestPage::new(core as u32, 0);
                    for number in 0..3000u32 {
                        wal.ensure(100).unwrap();
                        page.bytes[40..44].copy_from_slice(&number.to_le_bytes());
                        let mut change = wal.change();
                        change.page(&mut page, 40, &[&number.to_le_bytes()]);
                        change.commit(TxnLink::NONE);
                    }
                })
            })
            .collect();
        let mut redos = Vec::new();
        while !workers.iter().all(|worker| worker.is_finished()) {
            redos.push(wal.begin_epoch());
            std::thread::sleep(std::time::Duration::from_micros(300));
        }
        redos
    });
    wal.wait_durable(wal.position()).unwrap();
    // From each redo position on, the first change of each page is an image.
    let mut reader = reader(&folder);
    let mut last: HashMap<u32, (Lsn, u32)> = HashMap::new();
    while let Some(record) = reader.next_record().unwrap() {
        if record.kind() != Kind::Change {
            continue;
        }
        let part = record.parts().next().unwrap();
        let redo = redos.iter().rev().find(|redo| **redo <= record.position()).copied().unwrap_or(FIRST);
        let (before, number) = last.get(&part.page.0).copied().unwrap_or((Lsn::ZERO, u32::MAX));
        assert!(
            part.is_image() || before > redo,
            "page {} needs an image at {:?}",
            part.page,
            record.position()
        );
        let at = if part.is_image() { 42 } else { 0 };
        let now = u32::from_le_bytes(part.payload[at..at + 4].try_into().unwrap());
        assert_eq!(now, number.wrapping_add(1));
        last.insert(part.page.0, (record.lsn(), now));
    }
    assert!(last.len() == CORES && last.values().all(|(_, number)| *number == 2999));
}

#[test]
fn copies_taken_at_any_moment_hold_what_was_durable() {
    const CORES: usize = 2;
    let folder = Folder::new("moment");
    let wal = Wal::create(folder.path(), small(CORES)).unwrap();
    let acknowledged: Vec<Count> = (0..CORES).map(|_| Count::new(0)).collect();
    let stop = Count::new(0);
    std::thread::scope(|scope| {
        for core in 0..CORES {
            let (wal, acknowledged, stop) = (&wal, &acknowledged[core], &stop);
            scope.spawn(move || {
                act_as_core(core);
                let mut random = Random(core as u64);
                for number in 1u64.. {
                    let length = 8 + random.below(2000);
                    let mut undo = random.bytes(length);
                    undo[..8].copy_from_slice(&number.to_le_bytes());
                    let lsn = append_change(wal, core as u64 + 1, Lsn::ZERO, &undo);
                    if random.below(4) == 0 {
                        wal.wait_durable(lsn).unwrap();
                        acknowledged.store(number, Order::SeqCst);
                    }
                    if stop.load(Order::SeqCst) != 0 {
                        return;
                    }
                }
            });
        }
        for _ in 0..25 {
            std::thread::sleep(std::time::Duration::from_millis(3));
            let before: Vec<u64> = acknowledged.iter().map(|count| count.load(Order::SeqCst)).collect();
            let copy = folder.copy();
            let mut last = vec![0; CORES];
            for (txn, _, undo) in contents(&copy).0 {
                let number = u64::from_le_bytes(undo[..8].try_into().unwrap());
                assert_eq!(number, last[txn as usize - 1] + 1, "no record is missing or out of order");
                last[txn as usize - 1] = number;
            }
            assert!(before.iter().zip(&last).all(|(before, last)| before <= last), "{before:?} {last:?}");
        }
        stop.store(1, Order::SeqCst);
    });
}

#[test]
fn fibers_commit_in_groups() {
    const FIBERS: u64 = 60;
    const COMMITS: u64 = 40;
    // More workers than the machine has cores, so that the kernel interrupts gatherers.
    let cores = sync::stress::threads();
    let options = runtime::Options { cores: Some(cores), pin: false, ..Default::default() };
    let machine = runtime::Runtime::start(options).unwrap();
    let folder = Folder::new("fibers");
    let wal = machine.call(0, || Wal::create(folder.path(), small(cores)).unwrap());
    let groups = Arc::new(Count::new(0));
    let (count, done) = (groups.clone(), Arc::new(Count::new(0)));
    wal.on_durable(move |_| {
        count.fetch_add(1, Order::SeqCst);
    });
    for fiber in 0..FIBERS {
        let (wal, done) = (wal.clone(), done.clone());
        machine.spawn(fiber as usize % cores, move || {
            for number in 0..COMMITS {
                let txn = fiber * COMMITS + number + 1;
                let prev = append_change(&wal, txn, Lsn::ZERO, &[fiber as u8; 100]);
                wal.ensure_reserved(0).unwrap();
                let lsn = wal.append_commit(txn, prev, |_| {});
                if number % 5 == 4 {
                    wal.request_flush();
                } else {
                    wal.wait_durable(lsn).unwrap();
                    assert!(wal.durable() >= lsn);
                }
            }
            done.fetch_add(1, Order::SeqCst);
        });
    }
    let begun = std::time::Instant::now();
    while done.load(Order::SeqCst) < FIBERS || wal.durable() < wal.position() {
        assert!(begun.elapsed().as_secs() < 60, "{:?}, {} fibers done", wal, done.load(Order::SeqCst));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let mut commits: Vec<u64> =
        contents(&folder).0.iter().filter(|record| record.1 == Kind::Commit).map(|record| record.0).collect();
    commits.sort_unstable();
    assert!(commits.iter().copied().eq(1..=FIBERS * COMMITS));
    let groups = groups.load(Order::SeqCst);
    assert!(groups < FIBERS * COMMITS / 3, "{groups} writes for {} commits", FIBERS * COMMITS);
    let served = wal.state().writes.served;
    assert!((1..=FIBERS * COMMITS).contains(&served), "{served} of {} waits", FIBERS * COMMITS);
    machine.shutdown();
}

#[test]
fn a_helper_touches_the_ring_before_the_first_append() {
    let folder = Folder::new("touched");
    let wal = Wal::create(folder.path(), small(2)).unwrap();
    let size = wal.ring.size() as usize;
    let begun = std::time::Instant::now();
    while wal.ring.memory().present(0..size) < size {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "not all {size} bytes have memory");
        std::thread::yield_now();
    }
    assert_eq!((wal.memory().1, wal.memory().2), (0, 0), "nothing of it is used");
}

/// The cost of an append of 200 bytes: `cargo test -p storage --release append_cost -- --ignored
/// --nocapture`.
#[test]
#[ignore = "a measurement, not a check"]
fn the_cost_of_appends_is_timed() {
    const RECORDS: u64 = 40_000;
    for cores in [1, 2] {
        let folder = Folder::new("cost");
        let options = WalOptions { ring_bytes: 64 << 20, ..WalOptions::new(cores) };
        let wal = Wal::create(folder.path(), options).unwrap();
        let spent = Count::new(0);
        std::thread::scope(|scope| {
            for core in 0..cores {
                let (wal, spent) = (&wal, &spent);
                scope.spawn(move || {
                    act_as_core(core);
                    let mut page = TestPage::new(core as u32, 1 << 40);
                    let begun = processor_time();
                    for _ in 0..RECORDS {
                        wal.ensure(200).unwrap();
                        let mut change = wal.change();
                        change.page(&mut page, 40, &[&[1; 20], &[2; 60]]);
                        change.undo(&[3; 60]);
                        change.commit(TxnLink { txn: 7, prev: Lsn(8), compensation: None });
                        page.set_page_lsn(Lsn(1 << 40));
                    }
                    spent.fetch_add(processor_time() - begun, Order::Relaxed);
                });
            }
        });
        let each = spent.into_inner() / RECORDS / cores as u64;
        println!("{cores} cores: {each} ns for each append on each core");
    }
}

/// Nanoseconds this thread has run.
fn processor_time() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
