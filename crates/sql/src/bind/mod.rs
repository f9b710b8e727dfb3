//! Binding: parse trees to typed relational and scalar expressions.
