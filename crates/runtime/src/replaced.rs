//! Ways to the system that published fixes replaced, on the engine's own path, in a build with
//! `--cfg variants`. Each is taken only where `--variant` names its row.
//!
//! What must hold: none of them changes a result, and each counts its runs. A call that fails at
//! every statement would measure nothing, so the first open of the file of [`measure`] is at the
//! start.

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};

use sync::atomic::{AtomicBool, Ordering};
use sync::{LazyLock, OnceLock, WaitQueue, core_local};
use variants::chosen::{Arm, Row, arm, is_stock};
use variants::runs;

use crate::device::How;
use crate::os;
use crate::os::regular::{self, RegularFile};
use crate::wait_event::{self, WaitEvent};

/// Row `title` (B14): the process's title changes with each statement, by a system call.
pub fn title(text: &str) {
    if is_stock(Row::Title) {
        runs::count(Row::Title);
        let mut name = [0; 16];
        let len = text.len().min(15);
        name[..len].copy_from_slice(&text.as_bytes()[..len]);
        os::replaced::name_thread(&name);
    }
}

/// The file whose size the planner asks for.
#[derive(Debug)]
struct Measured {
    path: PathBuf,
    /// The open file that all cores share, in the stock state.
    shared: RegularFile,
}

static MEASURED: OnceLock<Measured> = OnceLock::new();

core_local! {
    /// The core's own open file of it. A backend of PostgreSQL has its own, too.
    static OWN: OnceCell<RegularFile> = const { OnceCell::new() };
}

fn open(path: &Path) -> io::Result<RegularFile> {
    regular::open(path, How::READ).map(|(file, _)| file)
}

/// Names the file of pages, whose size the planner asks for. A process has one; of several, the
/// first counts.
///
/// # Errors
/// Those of the system.
pub fn measure(path: &Path) -> io::Result<()> {
    if arm(Row::RelationSize) != Arm::Allcore && MEASURED.get().is_none() {
        let shared = open(path)?;
        MEASURED.get_or_init(|| Measured { path: path.to_owned(), shared });
    }
    Ok(())
}

/// Row `relation-size` (H11): the planner asks for a relation's size by a seek to the file's end.
///
/// The report's kernel took a mutex of the inode. In the stock state the mutex of one open file,
/// which all cores share, stands in for it. The published state has an open file a core.
///
/// # Panics
/// When no file was named, or the system fails.
pub fn relation_size() {
    let own = match arm(Row::RelationSize) {
        Arm::Stock => false,
        Arm::Published => true,
        Arm::Step | Arm::Allcore => return,
    };
    runs::count(Row::RelationSize);
    let measured = MEASURED.get().expect("the file was named at the start");
    let seek = |file: &RegularFile| os::replaced::seek_to_end(file.fd()).expect("an open file has an end");
    if own {
        OWN.with(|own| seek(own.get_or_init(|| open(&measured.path).expect("the file is there"))));
    } else {
        seek(&measured.shared);
    }
}

/// Row `socket` (K07): counts replies that a system call each sends, since there are no batches.
pub(crate) fn sent_alone(replies: usize) {
    if is_stock(Row::Socket) {
        (0..replies).for_each(|_| runs::count(Row::Socket));
    }
}

/// Whether a read of a file is under way, and the fibers that wait for its end.
static READING: AtomicBool = AtomicBool::new(false);
static READERS: LazyLock<WaitQueue> = LazyLock::new(|| WaitQueue::new(&"file read lock"));

/// Row `file-lock` (B14): a read takes a lock that excludes all others. The row's kernel held it
/// for a copy from memory; here it is held until the device answers.
pub(crate) fn reading<R>(read: impl FnOnce() -> R) -> R {
    struct Reading;
    impl Drop for Reading {
        fn drop(&mut self) {
            // Release: the next read comes after this one.
            READING.store(false, Ordering::Release);
            READERS.wake_one();
        }
    }
    if !is_stock(Row::FileLock) || crate::fiber::current().is_none() {
        return read();
    }
    runs::count(Row::FileLock);
    // Acquire: as above.
    let is_mine = || !READING.swap(true, Ordering::Acquire);
    wait_event::during(WaitEvent::DataFileRead, || READERS.wait_until(is_mine));
    let _reading = Reading;
    read()
}
