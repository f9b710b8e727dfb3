//! Mapped memory: reserved address space, whose pages come as they are touched.

use std::io;
use std::ptr;

use crate::device::Purpose;
use crate::os::process;

/// Maps zeroed memory that this process alone sees.
pub(crate) fn map(len: usize, purpose: Purpose) -> io::Result<*mut u8> {
    let flags = match purpose {
        Purpose::Pages => libc::MAP_NORESERVE,
        Purpose::HugePages(bits) => libc::MAP_HUGETLB | (bits as i32) << libc::MAP_HUGE_SHIFT,
        Purpose::Stack => libc::MAP_NORESERVE | libc::MAP_STACK,
    };
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new anonymous mapping touches no existing memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), len, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.cast()) }
}

/// Gives mapped memory back, with its addresses.
///
/// # Safety
/// The range is part of mappings of [`map`], and nothing refers to it any more.
pub(crate) unsafe fn unmap(start: *mut u8, len: usize) {
    // SAFETY: by contract.
    unsafe { libc::munmap(start.cast(), len) };
}

/// Gives the memory of whole pages back, not their addresses: they read zero afterwards. False
/// where the system refuses, so that they read as before.
///
/// # Safety
/// The caller may overwrite these pages with zeros.
pub(crate) unsafe fn discard(start: *mut u8, len: usize) -> bool {
    // SAFETY: by contract: to the program it looks like stores of zero.
    unsafe { libc::madvise(start.cast(), len, libc::MADV_DONTNEED) == 0 }
}

/// Whether memory stands behind the page that begins at this address; true where the system does
/// not say.
#[cfg(not(model))] // the model machine has an answer of its own
pub(crate) fn is_resident(page: *const u8) -> bool {
    let mut answer = 0;
    // SAFETY: the kernel looks at its tables and writes one byte for the one page.
    let asked = unsafe { libc::mincore(page.cast_mut().cast(), 1, &mut answer) };
    asked < 0 || answer & 1 != 0
}

/// Bytes of a range of whole pages behind which memory stands; none where the system does not say.
#[cfg(not(model))] // as above
pub(crate) fn present(start: *const u8, len: usize) -> usize {
    const PAGE: usize = 4096;
    const PAGES: usize = 4096;
    let mut answers = [0_u8; PAGES];
    let mut present = 0;
    for first in (0..len).step_by(PAGES * PAGE) {
        let part = (len - first).min(PAGES * PAGE);
        // SAFETY: the kernel looks at its tables, and writes a byte for each page of the part.
        let asked =
            unsafe { libc::mincore(start.wrapping_add(first).cast_mut().cast(), part, answers.as_mut_ptr()) };
        if asked == 0 {
            present +=
                answers[..part.div_ceil(PAGE)].iter().filter(|&&answer| answer & 1 != 0).count() * PAGE;
        }
    }
    present
}

/// Asks for huge pages in a range of a mapping (`true`), or for none. False where the system has
/// none, or gives none out.
///
/// # Safety
/// The range is part of a mapping of [`map`].
pub(crate) unsafe fn advise_huge(start: *mut u8, len: usize, wanted: bool) -> bool {
    let advice = if wanted { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
    // SAFETY: by contract; advice changes no contents.
    let is_taken = unsafe { libc::madvise(start.cast(), len, advice) == 0 };
    // The kernel takes the advice also where its settings say never.
    is_taken && (!wanted || gives_huge_pages())
}

/// Whether the kernel's settings let it use transparent huge pages of 2 MiB where it is asked to.
fn gives_huge_pages() -> bool {
    let read =
        |name: &str| process::text(format!("/sys/kernel/mm/transparent_hugepage/{name}")).unwrap_or_default();
    are_given(&read("enabled"), &read("hugepages-2048kB/enabled"))
}

/// Reads the kernel's settings: the one for all sizes, and the one for 2 MiB, which is empty before
/// Linux 6.8.
fn are_given(all: &str, two_mebibytes: &str) -> bool {
    match two_mebibytes.trim() {
        "" => !all.contains("[never]"),
        of_size if of_size.contains("[inherit]") => !all.contains("[never]"),
        of_size => !of_size.contains("[never]"),
    }
}

/// Keeps the pages of a range in memory from their first touch on.
///
/// # Errors
/// Where the process may not lock so much.
#[cfg(not(model))] // as above
pub(crate) fn lock(start: *mut u8, len: usize) -> io::Result<()> {
    // SAFETY: whether a page may leave memory changes nothing for the program.
    let done = unsafe { libc::mlock2(start.cast(), len, libc::MLOCK_ONFAULT) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes a lock back.
#[cfg(not(model))] // as above
pub(crate) fn unlock(start: *mut u8, len: usize) {
    // SAFETY: as above.
    unsafe { libc::munlock(start.cast(), len) };
}

/// Bytes that this process may lock without a privilege; none where the system sets no limit.
#[cfg(not(model))] // as above
pub(crate) fn lock_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes the structure that it is given.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    (asked == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Has the pages of a range come from these NUMA nodes in turn, and not from that of the thread
/// that touches them first. Pages that are there already move, where the kernel can move them.
///
/// # Errors
/// Where the kernel refuses, as in a container that forbids the call.
#[cfg(not(model))] // as above
pub(crate) fn interleave(start: *mut u8, len: usize, nodes: &[usize]) -> io::Result<()> {
    const MOVE: libc::c_ulong = 2; // MPOL_MF_MOVE
    let (nodes, bits) = crate::os::processor::node_mask(nodes);
    // SAFETY: the kernel reads the bits of `nodes`. Where a page comes from changes no contents.
    let done = unsafe {
        libc::syscall(libc::SYS_mbind, start, len, libc::MPOL_INTERLEAVE, nodes.as_ptr(), bits, MOVE)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether a range's pages come from several nodes in turn, by the page at this address.
///
/// # Errors
/// Where the kernel refuses to say.
#[cfg(all(test, not(model)))]
pub(crate) fn is_interleaved(page: *const u8) -> io::Result<bool> {
    const OF_ADDRESS: libc::c_ulong = 2; // MPOL_F_ADDR
    let mut policy: libc::c_int = 0;
    // SAFETY: the kernel writes the policy of the page's range.
    let done = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &mut policy, ptr::null::<usize>(), 0, page, OF_ADDRESS)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(policy == libc::MPOL_INTERLEAVE) }
}

/// Makes each access of a range fault.
///
/// # Safety
/// The range is part of a mapping of [`map`], and nothing refers to it.
pub(crate) unsafe fn forbid(start: *mut u8, len: usize) -> io::Result<()> {
    // SAFETY: by contract.
    let done = unsafe { libc::mprotect(start.cast(), len, libc::PROT_NONE) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::are_given;

    #[test]
    fn the_kernel_gives_huge_pages_where_its_settings_let_it() {
        let never = "always madvise [never]";
        let asked = "always [madvise] never";
        for (all, of_size, given) in [
            (asked, "", true),
            ("[always] madvise never", "", true),
            (never, "", false),
            ("", "", true),
            (asked, "always [inherit] madvise never\n", true),
            (never, "always [inherit] madvise never\n", false),
            (never, "always inherit [madvise] never\n", true),
            (never, "[always] inherit madvise never\n", true),
            (asked, "always inherit madvise [never]\n", false),
        ] {
            assert_eq!(are_given(all, of_size), given, "{all}, {of_size}");
        }
    }
}
