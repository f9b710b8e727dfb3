//! How a file is to be opened, and why a path can't be a file: the part that all machines share.

use std::fmt;

/// How a regular file is opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Make it if it is missing.
    pub(crate) create: bool,
    /// Fail if it exists.
    pub(crate) create_new: bool,
    /// Empty it first.
    pub(crate) truncate: bool,
    /// Bypass the kernel's page cache.
    pub(crate) direct: bool,
}

impl How {
    /// To read it only.
    pub(crate) const READ: How =
        How { read: true, write: false, create: false, create_new: false, truncate: false, direct: false };
    /// To write it from its beginning on; it is made if it is missing.
    pub(crate) const OVERWRITE: How =
        How { read: false, write: true, create: true, truncate: true, ..How::READ };
}

/// Why a path can't be a file: it names the path. The inner error of an [`std::io::Error`].
#[derive(Debug)]
pub struct Unusable(pub(crate) String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}
