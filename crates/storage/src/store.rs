//! The store: pool, log and space together.
