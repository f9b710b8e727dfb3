//! Tests of the B+-tree.

mod node;
