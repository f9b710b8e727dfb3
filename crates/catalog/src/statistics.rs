//! Statistics of a table's data, as ANALYZE collects them. The planner also asks for the current
//! number of rows, which the trees know.

use serde::{Deserialize, Serialize};

/// Statistics of one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatistics {
    /// Rows at the time of ANALYZE.
    pub rows: f64,
    /// Pages of its tree at that time.
    pub pages: f64,
    /// Statistics by column position. The list is shorter than the table when columns were added
    /// since.
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// The fraction of the values that is NULL, 0 to 1.
    pub null_fraction: f64,
    /// Distinct values. A negative number is a fraction of the rows (-1 = all different), as in
    /// `pg_stats.n_distinct`.
    pub distinct: f64,
    /// The fraction of the rows that have the most common value.
    pub top_frequency: f64,
    /// Average size of a value in bytes.
    pub width: f64,
}

impl ColumnStatistics {
    /// Distinct values among this number of rows.
    #[must_use]
    pub fn distinct_of(&self, rows: f64) -> f64 {
        let count = if self.distinct < 0.0 { -self.distinct * rows } else { self.distinct };
        count.clamp(1.0, rows.max(1.0))
    }
}
