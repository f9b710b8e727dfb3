//! Frames of the buffer pool.
