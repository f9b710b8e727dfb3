//! Virtual processors: one for each thread.

/// The processors this process may run on.
pub(crate) fn processors() -> &'static [usize] {
    &[0, 1, 2, 3]
}

/// Binds this thread to one processor: each has its own.
pub(crate) fn pin(_: usize) -> bool {
    true
}

/// Lets this thread run on these processors only: it has one of its own.
pub(crate) fn confine(_: &[usize]) {}

/// Lowers this thread's priority by so much. Without effect: each thread has a processor of its
/// own.
pub(crate) fn be_nice(_: i32) {}

/// The NUMA nodes: the machine shows none, so it has one.
pub(crate) fn nodes() -> Vec<(usize, String)> {
    Vec::new()
}

/// Takes new memory from a node first: the machine has one.
pub(crate) fn prefer_node(_: usize) -> std::io::Result<()> {
    Ok(())
}

/// Whether the process has a memory policy of its own: none.
pub(crate) fn has_memory_policy() -> bool {
    false
}

/// The NUMA nodes that give memory: not shown.
pub(crate) fn memory_nodes() -> Option<String> {
    None
}

/// The processors that this thread may run on.
pub(crate) fn allowed() -> Vec<usize> {
    processors().to_vec()
}

/// The processors of the core that this processor belongs to: not shown, so each is a core.
pub(crate) fn siblings(_: usize) -> Option<String> {
    None
}
