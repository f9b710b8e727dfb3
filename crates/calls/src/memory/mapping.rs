//! Shared memory and its mappings (B14).
//!
//! 1. An object is a nameless file in memory, so that processes can share it. Its pages come at the
//!    first touch, or all at once with [`WITH_ALL_PRESENT`].
//! 2. A mapping reserves addresses. A touch of an absent entry faults: the kernel finds the page,
//!    counts the mapping of it, and writes the entry.
//! 3. Forgetting drops the entries and those counts, and the pages stay.
//!
//! What must hold: words of the memory are reached as atomics only, because others map it too.
//!
//! Cost in line transfers: a touch of a page that is mapped costs 1 if another core touched it
//! last. A fault adds those of the kernel: the address space's lock and the line of the page's
//! count. The first touch of all adds the object's lock and its tree of pages. Zeroing a new page
//! of 4 KiB writes 64 lines. Forgetting costs the page's count again for each page, and an
//! interrupt for each other CPU that runs a thread of the process.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use sync::atomic::{AtomicU64, Ordering};

/// Bytes between two touches: an ordinary page.
pub const STEP: usize = 4096;
/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
/// [`Mapping::of`] with every page present.
pub const WITH_ALL_PRESENT: bool = true;
/// [`Mapping::of`] with no page present.
pub const WITH_NOTHING: bool = false;

/// The pages behind a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageKind {
    /// 4 KiB.
    Ordinary,
    /// 2 MiB where the kernel grants them, by advice.
    Transparent,
    /// 2 MiB from the kernel's pool.
    Reserved,
}

/// Memory that several address spaces can map.
#[derive(Debug)]
pub struct Object {
    file: OwnedFd,
    bytes: usize,
    kind: PageKind,
}

impl Object {
    /// Zeroed memory of so many bytes, a multiple of 2 MiB.
    ///
    /// # Errors
    /// A line: the kernel has no such pages.
    pub fn new(bytes: usize, kind: PageKind) -> Result<Self, String> {
        assert!(bytes > 0 && bytes.is_multiple_of(HUGE), "memory of whole huge pages");
        if kind == PageKind::Transparent && !grants_transparent() {
            let setting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
            return Err(format!(
                "no transparent huge pages of shared memory: {setting} is neither advise nor more"
            ));
        }
        if kind == PageKind::Reserved && free_huge_pages() * HUGE < bytes {
            return Err(format!(
                "{} free huge pages of 2 MiB, {} wanted: reserve them by vm.nr_hugepages",
                free_huge_pages(),
                bytes / HUGE
            ));
        }
        let flags = if kind == PageKind::Reserved { libc::MFD_HUGETLB | libc::MFD_HUGE_2MB } else { 0 };
        let failed = |call: &str| format!("no shared memory: {call}: {}", io::Error::last_os_error());
        // SAFETY: the name is a C string.
        let file = unsafe { libc::memfd_create(c"mechanism".as_ptr(), flags | libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(failed("memfd_create"));
        }
        // SAFETY: the call above made the descriptor, and nothing else has it.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        // SAFETY: takes no pointer, and the descriptor is open.
        match unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) } {
            0 => Ok(Self { file, bytes, kind }),
            _ => Err(failed("ftruncate")),
        }
    }
}

/// Whether the kernel grants huge pages for shared memory to those who ask.
fn grants_transparent() -> bool {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    setting.is_ok_and(|text| !text.contains("[never]") && !text.contains("[deny]"))
}

/// Huge pages of 2 MiB that nobody has taken from the kernel's pool.
pub(super) fn free_huge_pages() -> usize {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// An object in this address space, until dropped.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a mapping is an address range. Its words are reached as atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the whole object, with all pages present or with none.
    ///
    /// # Errors
    /// A line: the kernel refuses.
    pub fn of(object: &Object, present: bool) -> Result<Self, String> {
        Self::made(object, present).map_err(|error| format!("no mapping of shared memory: {error}"))
    }

    /// As [`Mapping::of`]. Allocates nothing, so a fork of this program may call it.
    pub(super) fn made(object: &Object, present: bool) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let populates = present && object.kind != PageKind::Transparent;
        let flags = libc::MAP_SHARED | if populates { libc::MAP_POPULATE } else { 0 };
        let file = object.file.as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), object.bytes, protection, flags, file, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = Self { start: start.cast(), bytes: object.bytes };
        if object.kind == PageKind::Transparent {
            mapping.advise(libc::MADV_HUGEPAGE)?;
            if present {
                mapping.populate()?;
            }
        }
        Ok(mapping)
    }

    /// Makes all pages present, in the object and in this address space.
    ///
    /// # Errors
    /// The kernel's.
    pub fn populate(&self) -> io::Result<()> {
        self.advise(libc::MADV_POPULATE_WRITE)
    }

    /// Takes all pages out of the object and of every address space. The next touch of a page
    /// allocates it, and its words are zero.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self) -> io::Result<()> {
        self.advise(libc::MADV_REMOVE)
    }

    /// Keeps pages in memory from their first touch on.
    ///
    /// # Errors
    /// The kernel's: the process may not lock so much.
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: the range is this mapping. The call changes no byte.
        match unsafe { libc::mlock2(self.start.cast(), self.bytes, libc::MLOCK_ONFAULT) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is this mapping. Its words are reached as atomics only, and zeroes are
        // valid ones.
        match unsafe { libc::madvise(self.start.cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The number of touches that reach all of it.
    pub fn steps(&self) -> usize {
        self.bytes / STEP
    }

    /// Reaches one step: adds 1 to its first word.
    #[inline]
    pub fn touch(&self, step: usize) {
        // Relaxed: a count.
        self.word(step).fetch_add(1, Ordering::Relaxed);
    }

    /// The touches of all steps.
    pub fn touches(&self) -> u64 {
        // Relaxed: counts.
        (0..self.steps()).map(|step| self.word(step).load(Ordering::Relaxed)).sum()
    }

    /// Drops the entries of this address space's page table. Returns whether the kernel did.
    pub fn forget(&self) -> bool {
        // The mapping is shared, so the object keeps its bytes.
        self.advise(libc::MADV_DONTNEED).is_ok()
    }

    fn word(&self, step: usize) -> &AtomicU64 {
        assert!(step < self.steps(), "a step of the mapping");
        // SAFETY: the word lies in the mapping, aligned to a page. Everybody reaches it as an
        // atomic.
        unsafe { AtomicU64::from_ptr(self.start.add(step * STEP).cast()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `of` made; no reference into it outlives this value.
        let _ = unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
