//! The processors, and which of them a thread may run on.

use std::fs::read_to_string;
use std::sync::OnceLock;

/// The processors that this process may run on: those of the first thread that asked. A runtime
/// asks before it pins a thread, so taskset and cgroups count, and a later pin does not.
pub(crate) fn processors() -> &'static [usize] {
    ORIGINAL.get_or_init(allowed)
}

static ORIGINAL: OnceLock<Vec<usize>> = OnceLock::new();

/// The processors that this thread may run on.
pub(crate) fn allowed() -> Vec<usize> {
    // SAFETY: all zero is an empty set, and the call writes at most the size given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        set
    };
    // SAFETY: the index stays below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Binds this thread to one processor; false when it isn't allowed.
pub(crate) fn pin(processor: usize) -> bool {
    // SAFETY: all zero is an empty set; `processor` came from such a set, so it is in range.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

/// Lets this thread run wherever the process may, although the thread that started it may be
/// pinned; best effort. Does nothing until a runtime has asked for [`processors`]: no thread is
/// pinned before.
pub(crate) fn unpin() {
    if let Some(processors) = ORIGINAL.get() {
        confine(processors);
    }
}

/// Lets this thread run on these processors of the process only; best effort.
pub(crate) fn confine(processors: &[usize]) {
    // SAFETY: all zero is an empty set; the numbers came from such a set, so they are in range.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        processors.iter().for_each(|&processor| libc::CPU_SET(processor, &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Makes this thread so much less urgent; best effort.
pub(crate) fn be_nice(by: i32) {
    // SAFETY: a plain system call; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, by) };
}

/// The NUMA nodes: the kernel's number of each and its list of processors; none where it shows no
/// nodes.
pub(crate) fn nodes() -> Vec<(usize, String)> {
    let number = |entry: std::fs::DirEntry| -> Option<(usize, std::path::PathBuf)> {
        Some((entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?, entry.path()))
    };
    let entries = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let mut nodes: Vec<_> = entries.filter_map(number).collect();
    nodes.sort_unstable();
    let list = |(number, path): (usize, std::path::PathBuf)| {
        Some((number, read_to_string(path.join("cpulist")).ok()?))
    };
    nodes.into_iter().filter_map(list).collect()
}

/// From now on the kernel takes this thread's new memory from a NUMA node, and from others only
/// when that one has none left. Threads that it starts do the same.
pub(crate) fn prefer_node(node: usize) -> std::io::Result<()> {
    let (nodes, bits) = node_mask(&[node]);
    // SAFETY: the kernel reads the bits of `nodes` and keeps no pointer.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_PREFERRED, nodes.as_ptr(), bits) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// A set of NUMA nodes for the kernel, and the number of its bits, of which the kernel reads one
/// less.
pub(crate) fn node_mask(nodes: &[usize]) -> (Vec<usize>, usize) {
    const BITS: usize = usize::BITS as usize;
    let highest = nodes.iter().copied().max().unwrap_or(0);
    let mut mask = vec![0usize; highest / BITS + 1];
    nodes.iter().for_each(|node| mask[node / BITS] |= 1 << (node % BITS));
    let bits = mask.len() * BITS + 1;
    (mask, bits)
}

/// Whether somebody has given this process a memory policy of its own, as `numactl` does.
pub(crate) fn has_memory_policy() -> bool {
    let mut policy: libc::c_int = libc::MPOL_DEFAULT;
    let (no_mask, no_bits, no_address, no_flags) = (std::ptr::null_mut::<usize>(), 0usize, 0usize, 0usize);
    // SAFETY: the kernel writes the policy, and no mask.
    let done = unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut policy, no_mask, no_bits, no_address, no_flags)
    };
    done == 0 && policy != libc::MPOL_DEFAULT
}

/// The NUMA nodes from which this process may take memory, as the kernel lists them.
pub(crate) fn memory_nodes() -> Option<String> {
    let status = read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// The processors of the core that this processor belongs to, as the kernel lists them.
pub(crate) fn siblings(processor: usize) -> Option<String> {
    let topology = format!("/sys/devices/system/cpu/cpu{processor}/topology");
    let list = |name| read_to_string(format!("{topology}/{name}")).ok();
    // The second name is that of kernels before 5.2.
    list("core_cpus_list").or_else(|| list("thread_siblings_list"))
}
