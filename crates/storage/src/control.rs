//! The control file.
