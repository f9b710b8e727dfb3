//! The buffer pool.
