//! VACUUM and ANALYZE.

use runtime::hash::QuickMap;
use txn::{Direction, Engine, Range, TxnSession, trees};

use super::keys::{table_tree, tree};
use super::memory::encode_key;
use super::{from_storage, from_txn};
use catalog::{ColumnStatistics, Table, TableStatistics};
use values::error::SqlError;
use values::row::RowView;
use values::types::Datum;

/// Removes deleted entries that no snapshot can see. Returns their number.
pub fn vacuum(engine: &Engine, table: &Table) -> Result<u64, SqlError> {
    table.trees().map(|address| engine.vacuum(&tree(address)).map_err(from_txn)).sum()
}

/// Rows to sample. A table with more rows gives every n-th of them.
const SAMPLE: u64 = 30_000;

#[derive(Default)]
struct Column {
    nulls: u64,
    width: u64,
    values: QuickMap<u64, u32>,
}

/// Gathers a table's statistics by the present snapshot.
pub fn analyze(txn: &TxnSession, table: &Table) -> Result<TableStatistics, SqlError> {
    let mut columns: Vec<Column> = table.columns.iter().map(|_| Column::default()).collect();
    let range = Range { lower: std::ops::Bound::Unbounded, upper: std::ops::Bound::Unbounded };
    let mut scan = txn.scan(&table_tree(table), range, Direction::Forward);
    let (mut rows, mut sampled, mut step) = (0_u64, 0_u64, 1_u64);
    let mut bytes = Vec::new();
    while let Some((_, row, _)) = scan.next(txn).map_err(from_txn)? {
        rows += 1;
        if rows.is_multiple_of(64) {
            runtime::fiber::safe_point();
            runtime::interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
        }
        if !rows.is_multiple_of(step) {
            continue;
        }
        sample(&mut columns, RowView::new(row, table.shape()), &mut bytes)?;
        sampled += 1;
        if sampled.is_multiple_of(SAMPLE) {
            step *= 2;
        }
    }
    let pages =
        trees::pages(txn.engine().folder(), table_tree(table)).map_err(|error| from_storage(&error))?;
    let columns = columns.iter().map(|column| column.statistics(sampled)).collect();
    Ok(TableStatistics { rows: rows as f64, pages: pages as f64, columns })
}

/// Adds a row's values to the columns' counts.
fn sample(columns: &mut [Column], row: RowView<'_>, bytes: &mut Vec<u8>) -> Result<(), SqlError> {
    for (at, column) in columns.iter_mut().enumerate() {
        let value = row.get(at)?;
        if value.is_null() {
            column.nulls += 1;
            continue;
        }
        bytes.clear();
        // ANALYZE does not fetch a value out of line. The value's number stands for it, as if no
        // two were equal.
        column.width += match value {
            Datum::OutOfLine(pointer) => {
                bytes.extend_from_slice(&pointer.number.to_le_bytes());
                u64::from(pointer.length)
            }
            value => {
                encode_key(value, bytes)?;
                bytes.len() as u64
            }
        };
        *column.values.entry(hash(bytes)).or_insert(0) += 1;
    }
    Ok(())
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(bytes)
}

impl Column {
    fn statistics(&self, sampled: u64) -> ColumnStatistics {
        let known = (sampled - self.nulls).max(1) as f64;
        let distinct = self.values.len() as f64;
        let once = self.values.values().filter(|count| **count == 1).count() as f64;
        // If more than 10% of the values occur once, the number of distinct values grows with the
        // table. Otherwise the sample holds about all of them.
        let growing = once > 0.1 * known;
        ColumnStatistics {
            null_fraction: self.nulls as f64 / sampled.max(1) as f64,
            distinct: if growing { -(distinct / known) } else { distinct },
            top_frequency: f64::from(self.values.values().copied().max().unwrap_or(0)) / known,
            width: self.width as f64 / known,
        }
    }
}
