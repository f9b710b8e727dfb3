//! Statistics of a table's data, as ANALYZE computes them. The planner also asks for the present
//! number of rows, which the trees know.

use serde::{Deserialize, Serialize};

/// Statistics of one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatistics {
    /// Rows when it was analysed.
    pub rows: f64,
    /// Pages of its tree then.
    pub pages: f64,
    /// By column position; shorter than the table when columns were added since.
    pub columns: Vec<ColumnStatistics>,
}

/// Statistics of one column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnStatistics {
    /// The part of the values that is NULL.
    pub null_fraction: f64,
    /// Distinct values; when negative, as a part of the rows (-1 = all different), as
    /// `pg_stats.n_distinct` is.
    pub distinct: f64,
    /// The part of the rows that the most common value has.
    pub top_frequency: f64,
    /// Bytes of a value on average.
    pub width: f64,
}

impl ColumnStatistics {
    /// Distinct values among so many rows.
    #[must_use]
    pub fn distinct_of(&self, rows: f64) -> f64 {
        let count = if self.distinct < 0.0 { -self.distinct * rows } else { self.distinct };
        count.clamp(1.0, rows.max(1.0))
    }
}
