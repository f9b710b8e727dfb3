//! Scripts of several sessions, statement by statement, with PostgreSQL 18's outcomes.

mod advisory;
mod dangling;
mod doomed;
mod drops;
mod foreign_keys;
mod generated_names;
mod hidden_rows;
mod locks;
mod names;
mod newest_conditions;
mod newest_joins;
mod newest_keys;
mod newest_outer_joins;
mod newest_rows;
mod newest_subqueries;
mod parents;
mod resolved_names;
mod resolved_queries;
mod savepoints;
mod script;
mod shifted_keys;
mod statistics;
mod subquery_locks;
mod unique_keys;
mod upserts;
mod waiting_inserts;
