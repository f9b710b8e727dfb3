//! Scripts of several sessions, statement by statement, with PostgreSQL 18's outcomes.
#![allow(missing_docs, reason = "a test")]

#[path = "interleaved/advisory.rs"]
mod advisory;
mod common;
#[path = "interleaved/dangling.rs"]
mod dangling;
#[path = "interleaved/drops.rs"]
mod drops;
#[path = "interleaved/foreign_keys.rs"]
mod foreign_keys;
#[path = "interleaved/generated_names.rs"]
mod generated_names;
#[path = "interleaved/hidden_rows.rs"]
mod hidden_rows;
#[path = "interleaved/locks.rs"]
mod locks;
#[path = "interleaved/names.rs"]
mod names;
#[path = "interleaved/newest_conditions.rs"]
mod newest_conditions;
#[path = "interleaved/newest_joins.rs"]
mod newest_joins;
#[path = "interleaved/newest_keys.rs"]
mod newest_keys;
#[path = "interleaved/newest_outer_joins.rs"]
mod newest_outer_joins;
#[path = "interleaved/newest_rows.rs"]
mod newest_rows;
#[path = "interleaved/newest_subqueries.rs"]
mod newest_subqueries;
#[path = "interleaved/parents.rs"]
mod parents;
#[path = "interleaved/resolved_names.rs"]
mod resolved_names;
#[path = "interleaved/resolved_queries.rs"]
mod resolved_queries;
#[path = "interleaved/savepoints.rs"]
mod savepoints;
#[path = "interleaved/script.rs"]
mod script;
#[path = "interleaved/shifted_keys.rs"]
mod shifted_keys;
#[path = "interleaved/subquery_locks.rs"]
mod subquery_locks;
#[path = "interleaved/unique_keys.rs"]
mod unique_keys;
#[path = "interleaved/upserts.rs"]
mod upserts;
