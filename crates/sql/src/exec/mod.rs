//! The executor: pull operators over datum registers.
