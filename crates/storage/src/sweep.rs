//! The clock sweep.
