//! Recovery from the log.
