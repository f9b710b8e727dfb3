//! The planner: bound queries to plans, by cost.
