//! The page writer.
