//! Parsing: SQL text to PostgreSQL's parse tree, on the worker's stack.
