//! Virtual processors: one for each thread.

/// The processors this process may run on.
pub(crate) fn processors() -> &'static [usize] {
    &[0, 1, 2, 3]
}

/// Binds this thread to one processor: each has its own.
pub(crate) fn pin(_: usize) -> bool {
    true
}

/// Lowers this thread's priority by so much. Without effect: each thread has a processor of its
/// own.
pub(crate) fn be_nice(_: i32) {}

/// NUMA nodes of the machine.
pub(crate) fn numa_nodes() -> usize {
    1
}
