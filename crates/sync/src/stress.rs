//! The size of stress tests. Only tests of this crate and of those above it use it.

/// Threads of a stress test: twice the processors, and 16 at least. So on any machine the kernel
/// stops threads halfway, and others run into what they hold.
#[allow(clippy::disallowed_methods)] // tests run on the operating system's machine
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).saturating_mul(2).max(16)
}
