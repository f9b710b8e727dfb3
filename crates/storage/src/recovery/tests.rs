//! Recovery against a model, and the table of a start's findings.
//!
//! The model has pages in memory, checkpoints, and transactions that each own a strip of every
//! page. Some pages are written to a "disk" at random times, as the write-ahead rule allows. At a
//! random moment the test copies the disk and the log's folder, tears the log's end, and recovers
//! the copy. Each page must then hold the changes of exactly the transactions that had committed by
//! the log's end. Each acknowledged commit must be among them.

mod damage;

use std::cell::RefCell;

use super::*;
use crate::checkpoint::{self, CheckpointPages};
use crate::log::tests::{Folder, Random, act_as_core, small};
use crate::log::{LoggedPage, TxnLink};
use crate::page::{self, HEADER_SIZE};

const PAGES: usize = 12;
/// Transactions alive at once; each owns one strip of every page.
const STRIPS: usize = 8;
const STRIP: usize = (PAGE_SIZE - HEADER_SIZE) / STRIPS;
const OP_SET: u8 = 200;
const OP_FILL: u8 = 201;

fn op(op: u8, payload: &[u8], page: &mut [u8]) -> Result<(), &'static str> {
    match (op, payload) {
        (OP_SET, [low, high, bytes @ ..]) => {
            let at = usize::from(u16::from_le_bytes([*low, *high]));
            page.get_mut(at..at + bytes.len()).ok_or("outside of the page")?.copy_from_slice(bytes);
            Ok(())
        }
        (OP_FILL, [byte]) => {
            page[HEADER_SIZE..].fill(*byte);
            Ok(())
        }
        _ => Err("unknown operation"),
    }
}

#[derive(Clone)]
struct ModelPage {
    number: PageNo,
    bytes: Vec<u8>,
    /// Changed since it was written.
    dirty: bool,
}

impl LoggedPage for ModelPage {
    fn page_no(&self) -> PageNo {
        self.number
    }
    fn page_lsn(&self) -> Lsn {
        page::lsn(&self.bytes)
    }
    fn image(&self) -> &[u8] {
        &self.bytes
    }
    fn set_page_lsn(&mut self, lsn: Lsn) {
        page::set_lsn(&mut self.bytes, lsn);
    }
}

/// Pages in memory, and those of them on disk.
struct Pages {
    memory: RefCell<Vec<ModelPage>>,
    disk: RefCell<Vec<Vec<u8>>>,
}

impl Pages {
    fn from_disk(disk: Vec<Vec<u8>>) -> Pages {
        let memory = disk.iter().enumerate();
        let memory = memory.map(|(at, bytes)| ModelPage {
            number: PageNo(at as u32),
            bytes: bytes.clone(),
            dirty: false,
        });
        Pages { memory: RefCell::new(memory.collect()), disk: RefCell::new(disk) }
    }

    fn write(&self, at: usize, wal: &Wal) {
        let page = &mut self.memory.borrow_mut()[at];
        if page.dirty && page.page_lsn() <= wal.durable() {
            page::seal(&mut page.bytes);
            self.disk.borrow_mut()[at].clone_from(&page.bytes);
            page.dirty = false;
        }
    }
}

struct Writing<'a>(&'a Pages, &'a Wal);

impl CheckpointPages for Writing<'_> {
    fn write_before(&self, _lsn: Lsn, _pace: &mut dyn FnMut(usize, usize)) -> Result<(), Error> {
        self.1.wait_durable(self.1.position())?;
        (0..PAGES).for_each(|at| self.0.write(at, self.1));
        Ok(())
    }
    fn seal(&self, _salt: u32, _generation: u64) -> Result<(), Error> {
        Ok(())
    }
    fn count(&self) -> u32 {
        0
    }
}

impl RedoPages for &Pages {
    fn redo(
        &mut self,
        page_no: PageNo,
        replaced: bool,
        lsn: Lsn,
        change: &mut dyn FnMut(&mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let page = &mut self.memory.borrow_mut()[page_no.0 as usize];
        if !page.dirty && page::verify(&page.bytes, page_no).is_err() {
            if !replaced {
                return Err(Error::Corrupt { page: page_no, what: "checksum mismatch" });
            }
            page.bytes.fill(0);
        }
        if page.page_lsn() < lsn {
            change(&mut page.bytes)?;
            page.bytes[page::offset::PAGE_NO..page::offset::PAGE_NO + 4]
                .copy_from_slice(&page_no.0.to_le_bytes());
            page.set_page_lsn(lsn);
            page.dirty = true;
        }
        Ok(())
    }
}

/// The undo information of a transaction's record: page, offset, old bytes.
fn undo_bytes(at: usize, offset: usize, old: &[u8]) -> Vec<u8> {
    [&(at as u32).to_le_bytes()[..], &(offset as u16).to_le_bytes(), old].concat()
}

fn set(wal: &Wal, pages: &Pages, at: usize, offset: usize, bytes: &[u8], link: TxnLink) -> Lsn {
    wal.ensure(8192).unwrap();
    let page = &mut pages.memory.borrow_mut()[at];
    let undo = undo_bytes(at, offset, &page.bytes[offset..offset + bytes.len()]);
    page.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
    page.dirty = true;
    let mut change = wal.change();
    change.page(page, OP_SET, &[&(offset as u16).to_le_bytes(), bytes]);
    change.undo(&undo);
    change.commit(link)
}

struct Undo<'a> {
    wal: &'a Wal,
    pages: &'a Pages,
    undone: usize,
    /// Stops with an error after this many changes.
    limit: usize,
}

impl UndoHandler for Undo<'_> {
    fn undo(&mut self, txn: u64, _lsn: Lsn, undo: &[u8], prev: Lsn, last: Lsn) -> Result<Lsn, Error> {
        if self.undone == self.limit {
            return Err(Error::LogFull);
        }
        self.undone += 1;
        let at = u32::from_le_bytes(undo[..4].try_into().unwrap()) as usize;
        let offset = usize::from(u16::from_le_bytes([undo[4], undo[5]]));
        let link = TxnLink { txn, prev: last, compensation: Some(prev) };
        Ok(set(self.wal, self.pages, at, offset, &undo[6..], link))
    }
}

/// A live transaction of the model.
#[derive(Clone, Default)]
struct Live {
    txn: u64,
    first: Lsn,
    last: Lsn,
    changes: Vec<Done>,
}

/// A change of a live transaction.
#[derive(Clone)]
struct Done {
    at: usize,
    offset: usize,
    old: Vec<u8>,
    new: Vec<u8>,
    /// The transaction's record before this one.
    prev: Lsn,
}

struct Model {
    folder: Folder,
    wal: Arc<Wal>,
    pages: Pages,
    floor: Arc<sync::atomic::AtomicU64>,
    live: Vec<Option<Live>>,
    next_txn: u64,
    committed: Vec<(Lsn, Vec<Done>)>,
    acknowledged: Lsn,
}

impl Model {
    fn new() -> Model {
        act_as_core(0);
        let folder = Folder::new("model");
        std::fs::write(folder.path().join(PAGES_FILE), []).unwrap();
        let wal = Wal::create(folder.path(), small(1)).unwrap();
        let pages = Pages::from_disk(vec![vec![0; PAGE_SIZE]; PAGES]);
        for page in pages.memory.borrow_mut().iter_mut() {
            wal.ensure(100).unwrap();
            page::format(&mut page.bytes, page.number, page::PageKind::Leaf, 1, 0);
            op(OP_FILL, &[0], &mut page.bytes).unwrap();
            page.dirty = true;
            let mut change = wal.change();
            change.new_page(page, OP_FILL, &[&[0]]);
            change.commit(TxnLink::NONE);
        }
        let floor = Arc::new(sync::atomic::AtomicU64::new(u64::MAX));
        let source = floor.clone();
        wal.set_floor_source(move || Lsn(source.load(sync::atomic::Ordering::SeqCst)));
        wal.set_checkpoint_info(|| b"info".to_vec());
        let live = vec![None; STRIPS];
        Model { folder, wal, pages, floor, live, next_txn: 1, committed: Vec::new(), acknowledged: Lsn::ZERO }
    }

    fn step(&mut self, random: &mut Random) {
        let strip = random.below(STRIPS);
        match random.below(20) {
            0 => self.pages.write(random.below(PAGES), &self.wal),
            1 => self.wal.wait_durable(self.wal.position()).unwrap(),
            2 if random.below(12) == 0 => {
                let oldest = self.live.iter().flatten().map(|live| live.first.0).min().unwrap_or(u64::MAX);
                self.floor.store(oldest, sync::atomic::Ordering::SeqCst);
                checkpoint::run(&self.wal, &Writing(&self.pages, &self.wal)).unwrap();
            }
            3 | 4 => self.commit(strip, random),
            5 => self.roll_back(strip),
            _ => self.change(strip, random),
        }
    }

    fn change(&mut self, strip: usize, random: &mut Random) {
        let at = random.below(PAGES);
        let length = 1 + random.below(100);
        let offset = HEADER_SIZE + strip * STRIP + random.below(STRIP - length);
        let new = random.bytes(length);
        let (next_txn, position) = (&mut self.next_txn, self.wal.position());
        let live = self.live[strip].get_or_insert_with(|| {
            *next_txn += 1;
            Live { txn: *next_txn, first: position, ..Live::default() }
        });
        let old = self.pages.memory.borrow()[at].bytes[offset..offset + length].to_vec();
        let link = TxnLink { txn: live.txn, prev: live.last, compensation: None };
        live.last = set(&self.wal, &self.pages, at, offset, &new, link);
        live.changes.push(Done { at, offset, old, new, prev: link.prev });
    }

    fn commit(&mut self, strip: usize, random: &mut Random) {
        let Some(live) = self.live[strip].take() else { return };
        self.wal.ensure_reserved(0).unwrap();
        let lsn = self.wal.append_commit(live.txn, live.last, |_| {});
        self.committed.push((lsn, live.changes));
        if random.below(2) == 0 {
            self.wal.wait_durable(lsn).unwrap();
            self.acknowledged = lsn;
        }
    }

    fn roll_back(&mut self, strip: usize) {
        let Some(mut live) = self.live[strip].take() else { return };
        for Done { at, offset, old, prev, .. } in live.changes.iter().rev() {
            let link = TxnLink { txn: live.txn, prev: live.last, compensation: Some(*prev) };
            live.last = set(&self.wal, &self.pages, *at, *offset, old, link);
        }
        self.wal.ensure_reserved(0).unwrap();
        self.wal.append_abort(live.txn, live.last);
    }

    /// The expected bodies of the pages when the log ends at `end`.
    fn expected(&self, end: Lsn) -> Vec<Vec<u8>> {
        let mut pages = vec![vec![0; PAGE_SIZE]; PAGES];
        for (lsn, changes) in &self.committed {
            if *lsn <= end {
                for Done { at, offset, new, .. } in changes {
                    pages[*at][*offset..offset + new.len()].copy_from_slice(new);
                }
            }
        }
        pages
    }
}

/// Redo by one fiber.
fn repeat(recovery: &Recovery, mut pages: &Pages, op: RedoOp) -> Result<(), Error> {
    recovery.redo(&mut |lsn, part| redo_part(&mut pages, op, lsn, part))
}

/// Recovers a copy and returns the pages. Undo stops after `limit` changes.
fn recover(
    folder: &Folder,
    disk: Vec<Vec<u8>>,
    limit: usize,
) -> Result<(Pages, Arc<Wal>), (Pages, Arc<Wal>)> {
    let (recovery, control_file) =
        Recovery::analyse(folder.path(), Manner::default()).expect("the copy can be analysed");
    let wal = recovery.resume(control_file, small(1)).unwrap();
    let pages = Pages::from_disk(disk);
    repeat(&recovery, &pages, op).expect("redo");
    let mut handler = Undo { wal: &wal, pages: &pages, undone: 0, limit };
    match recovery.undo(&wal, &mut handler) {
        Ok(()) => {
            checkpoint::run(&wal, &Writing(&pages, &wal)).unwrap();
            Ok((pages, wal))
        }
        Err(_) => {
            wal.wait_durable(wal.position()).unwrap();
            Err((pages, wal))
        }
    }
}

fn check(pages: &Pages, expected: &[Vec<u8>], what: &str) {
    for (page, expected) in pages.memory.borrow().iter().zip(expected) {
        for strip in 0..STRIPS {
            let range = HEADER_SIZE + strip * STRIP..HEADER_SIZE + (strip + 1) * STRIP;
            assert!(
                page.bytes[range.clone()] == expected[range],
                "{what}: page {}, strip {strip}",
                page.number
            );
        }
    }
}

/// Tears everything that is not durable: random bytes of the log behind `durable`, and pages
/// written after the checkpoint.
fn tear_log(folder: &Folder, durable: Lsn, random: &mut Random) {
    let path = folder.path().join(LOG_FOLDER).join(format!("{:016x}", durable.0 >> 20));
    let mut bytes = std::fs::read(&path).unwrap();
    let from = (durable.0 & ((1 << 20) - 1)) as usize;
    if random.below(2) == 0 && from < bytes.len() {
        let to = bytes.len().min(from + 1 + random.below(5000));
        bytes[from..to].iter_mut().for_each(|byte| *byte = random.next() as u8);
        std::fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn every_crash_is_recovered() {
    for seed in 0..14u64 {
        let mut random = Random(seed * 7919 + 1);
        let mut model = Model::new();
        for crash in 0..4 {
            for _ in 0..random.below(900) {
                model.step(&mut random);
            }
            let what = format!("seed {seed}, crash {crash}");
            let (durable, acknowledged) = (model.wal.durable(), model.acknowledged);
            let mut disk = model.pages.disk.borrow().clone();
            let copy = model.folder.copy();
            tear_log(&copy, durable, &mut random);
            // A page whose write was under way is torn. Only pages changed since the checkpoint are
            // ever written. The end that counts is the first recovery's: from there on the copy's
            // log is another history.
            let first = Recovery::analyse(copy.path(), Manner::default()).unwrap().0;
            let (redo, end) = (first.control().redo, first.end);
            let at = random.below(PAGES);
            if page::lsn(&disk[at]) > redo {
                disk[at][4096..].fill(0xee);
            }
            // The test cuts undo short once, and repeats the whole recovery on the result.
            let limit = random.below(40);
            let pages = match recover(&copy, disk.clone(), limit) {
                Ok((pages, _)) => pages,
                Err((pages, wal)) => {
                    (0..PAGES).filter(|_| random.below(2) == 0).for_each(|at| pages.write(at, &wal));
                    drop(wal);
                    let disk = pages.disk.borrow().clone();
                    recover(&copy, disk, usize::MAX).unwrap_or_else(|_| panic!("{what}: second try")).0
                }
            };
            assert!(
                end >= durable && end >= acknowledged,
                "{what}: the log ends at {end}, durable was {durable}"
            );
            check(&pages, &model.expected(end), &what);
            // Recovered once more, there is nothing to do.
            let disk = pages.disk.borrow().clone();
            let (again, _) =
                recover(&copy, disk, 0).unwrap_or_else(|_| panic!("{what}: nothing to undo any more"));
            check(&again, &model.expected(end), &what);
        }
    }
}

/// A store's folder with a log of some segments and one checkpoint in the middle.
fn sample() -> (Folder, Vec<Vec<u8>>) {
    let mut model = Model::new();
    let mut random = Random(5);
    for step in 0..9000 {
        model.change(step % STRIPS, &mut random);
        if step == 4000 {
            model.floor.store(u64::MAX, sync::atomic::Ordering::SeqCst);
            checkpoint::run(&model.wal, &Writing(&model.pages, &model.wal)).unwrap();
        }
    }
    model.wal.wait_durable(model.wal.position()).unwrap();
    let disk = model.pages.disk.borrow().clone();
    (model.folder.copy(), disk)
}

fn refusal(folder: &Folder) -> Error {
    Recovery::analyse(folder.path(), Manner::default()).map(|_| ()).expect_err("it must be refused")
}

#[test]
fn a_start_refuses_each_damage_of_the_table() {
    let (good, _) = sample();
    let control = Recovery::analyse(good.path(), Manner::default()).unwrap().0.control().clone();
    assert_eq!(control.info, b"info");
    let segments: Vec<PathBuf> = {
        let folder = std::fs::read_dir(good.path().join(LOG_FOLDER)).unwrap();
        let mut names: Vec<_> =
            folder.flatten().map(|entry| PathBuf::from(LOG_FOLDER).join(entry.file_name())).collect();
        names.sort();
        names
    };
    assert!(segments.len() >= 3, "{segments:?}");
    let broken = |break_it: &dyn Fn(&Path)| {
        let copy = good.copy();
        break_it(copy.path());
        refusal(&copy)
    };
    use FormatProblem::{Damaged, Missing, Unfit};
    let missing = |file: &str| Error::Format(Missing(file.to_owned()));
    let remove = |name: &Path| broken(&|folder| std::fs::remove_file(folder.join(name)).unwrap());
    assert_eq!(remove(Path::new("control")), missing("control"));
    assert_eq!(remove(Path::new("pages")), missing("pages"));
    assert_eq!(remove(&segments[0]), missing(&segments[0].display().to_string()));
    match remove(&segments[1]) {
        Error::Format(FormatProblem::LogDamaged(damage)) => assert_eq!(damage.missing, Some(1)),
        other => panic!("{other:?}"),
    }
    let empty = |name: &'static str| broken(&|folder| std::fs::write(folder.join(name), []).unwrap());
    assert_eq!(empty("control"), Error::Format(Damaged("control")));
    let no_log = broken(&|folder| std::fs::remove_dir_all(folder.join(LOG_FOLDER)).unwrap());
    assert_eq!(no_log, missing("log"));
    let long = broken(&|folder| std::fs::write(folder.join(&segments[1]), vec![0; (1 << 20) + 1]).unwrap());
    assert!(matches!(long, Error::Format(Unfit(_))), "{long:?}");
    // The log ends before the last checkpoint's record.
    let lost = broken(&|folder| {
        let at = (control.log_end.0 - 8) % (1 << 20);
        let name = folder.join(LOG_FOLDER).join(format!("{:016x}", (control.log_end.0 - 8) >> 20));
        let mut bytes = std::fs::read(&name).unwrap();
        bytes[at as usize] ^= 1;
        std::fs::write(name, bytes).unwrap();
    });
    assert!(matches!(lost, Error::Format(FormatProblem::LogDamaged(_))), "{lost:?}");
    // Fewer pages than at the last checkpoint.
    let shorter = broken(&|folder| {
        let (file, mut control) = ControlFile::open(folder).unwrap();
        control.pages = 1;
        file.write(&control).unwrap();
    });
    assert_eq!(shorter, Error::Format(Unfit("file pages is shorter than at the last checkpoint".to_owned())));
}

#[test]
fn pages_that_redo_can_not_mend_are_refused() {
    let (folder, disk) = sample();
    let redo = |disk: Vec<Vec<u8>>, op: RedoOp| {
        let recovery = Recovery::analyse(folder.path(), Manner::default()).unwrap().0;
        repeat(&recovery, &Pages::from_disk(disk), op)
    };
    assert_eq!(redo(disk.clone(), op), Ok(()));
    let refuse: RedoOp = |_, _, _| Err("unknown operation");
    assert!(matches!(redo(disk.clone(), refuse), Err(Error::Corrupt { .. })));
    // All pages are damaged. Each page's first change after the checkpoint is an image, so all come
    // back.
    assert_eq!(redo(vec![vec![0x55; PAGE_SIZE]; PAGES], op), Ok(()));
}

#[test]
fn highest_transaction_and_losers_are_found() {
    let mut model = Model::new();
    let mut random = Random(3);
    for strip in 0..STRIPS {
        model.change(strip, &mut random);
    }
    model.commit(0, &mut random);
    model.commit(1, &mut random);
    model.roll_back(2);
    model.wal.wait_durable(model.wal.position()).unwrap();
    let recovery = Recovery::analyse(model.folder.path(), Manner::default()).unwrap().0;
    assert_eq!((recovery.losers(), recovery.highest_txn()), (STRIPS - 3, model.next_txn));
    assert_eq!(recovery.end, model.wal.position());
}

#[test]
fn a_page_newer_than_the_log_is_refused() {
    let options = runtime::Options { cores: Some(1), pin: false, ..Default::default() };
    let machine = runtime::Runtime::start(options).unwrap();
    let folder = Folder::new("newer");
    let found = machine.call(0, || {
        let mut options = crate::store::StoreOptions::new(256, 1);
        options.wal = small(1);
        let store = crate::Store::create(folder.path(), &machine, &options).unwrap();
        let redone = |end, lsn| {
            PoolPages { pool: &store.pool, end, discards: false }.redo(PageNo(0), false, lsn, &mut |_| Ok(()))
        };
        let found = (redone(store.wal.position(), Lsn(1)), redone(Lsn(1), Lsn(1)));
        store.close().unwrap();
        found
    });
    let refused = Err(Error::Corrupt { page: PageNo(0), what: "newer than the end of the log" });
    assert_eq!(found, (Ok(()), refused));
    machine.shutdown();
}
