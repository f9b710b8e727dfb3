//! The heap: the host's, which is no part of a run. It stays as it is.

/// Has the allocator map large blocks: it does not.
pub(crate) fn configure(_: i32, _: i32) {}

/// Gives free pages back to the host: it does not.
pub(crate) fn trim() {}
