//! The files of pages.
