//! The input of a compilation: the definitions to bind against, and the statement's part of the
//! client's text.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use catalog::{Catalog, Column, Table};
use values::error::SqlError;
use values::types::Value;

use crate::normalize::Literal;
use crate::plan::Truths;

/// The methods that the planner may choose freely (settings `enable_hashjoin` and the like). A
/// method that is off is used only where there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Methods {
    /// Hash joins.
    pub hash_join: bool,
    /// Merge joins.
    pub merge_join: bool,
    /// Nested loops.
    pub nested_loop: bool,
    /// Nested loops that keep the rows of their right side.
    pub memoize: bool,
    /// Scans of indexes, the primary key among them.
    pub index_scan: bool,
    /// Scans of whole tables.
    pub table_scan: bool,
    /// Scans that combine several indexes.
    pub bitmap_scan: bool,
    /// Scans of an index's entries alone.
    pub index_only_scan: bool,
    /// Sorts.
    pub sort: bool,
    /// Sorts of rows that come by the first keys.
    pub incremental_sort: bool,
    /// Bytes that an operator may keep in memory.
    pub work_mem: usize,
    /// The most items of FROM whose order a JOIN leaves to the planner.
    pub join_collapse_limit: usize,
}

impl Default for Methods {
    fn default() -> Self {
        Self {
            hash_join: true,
            merge_join: true,
            nested_loop: true,
            memoize: true,
            index_scan: true,
            table_scan: true,
            bitmap_scan: true,
            index_only_scan: true,
            sort: true,
            incremental_sort: true,
            work_mem: 4 << 20,
            join_collapse_limit: 100,
        }
    }
}

/// The definitions that a statement is compiled against.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Arc<Catalog>,
    /// Setting `search_path`, as schema names.
    pub search_path: &'a [String],
    /// Sizes of tables at this moment; `None` where they cannot be asked for.
    pub sizes: Option<&'a dyn Sizes>,
    /// The methods that plans may use.
    pub methods: Methods,
}

/// Sizes of tables at this moment, for tables without statistics.
pub trait Sizes {
    /// An estimate of a table's rows. `None` if it would have to wait for the disk.
    fn rows(&self, table: &Table) -> Option<f64>;
}

/// A column of a table that takes an output column of the query.
#[derive(Clone, Copy, Debug)]
pub struct Assigned<'a> {
    /// The position of the output column.
    pub output: usize,
    /// The column that takes its values. They are cast as an assignment casts them.
    pub column: &'a Column,
}

/// The statement to compile.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The client's text. Positions in errors refer to it.
    pub text: &'a str,
    /// The byte offset at which the statement begins, from [`crate::parse::split`].
    pub start: usize,
    /// The byte offset at which it ends.
    pub end: usize,
    /// Declared types of parameters (OIDs; 0 or missing = to be inferred). None: the text may not
    /// contain parameters.
    pub parameters: Option<&'a [u32]>,
    /// The text's literals, from normalisation. Literals whose values the plan does not need become
    /// parameters after the declared ones. Empty in EXPLAIN, PREPARE and texts of several
    /// statements.
    pub literals: &'a [Literal],
    /// The parameters' values in a run that the plan is for, literals among them. They change its
    /// estimates alone. An empty list: the plan is for any values. None: it is for the literals of
    /// the text.
    pub values: Option<&'a [Value]>,
    /// The truths of the statement's premises in the runs that the plan is for. None: any.
    pub truths: Option<Truths>,
    /// A shared copy of a text with several statements, for those compiled beside the core.
    pub copy: Option<&'a OnceCell<Arc<Box<str>>>>,
    /// The output column whose values a rewritten table's column takes.
    pub assigned: Option<Assigned<'a>>,
}

impl<'a> Request<'a> {
    /// A whole text without declared parameters and lifted literals.
    #[must_use]
    pub fn plain(text: &'a str) -> Request<'a> {
        Request {
            text,
            start: 0,
            end: text.len(),
            parameters: Some(&[]),
            literals: &[],
            values: None,
            truths: None,
            copy: None,
            assigned: None,
        }
    }

    /// A copy of the text for a thread beside the core. It needs the whole text, for positions and
    /// for parts that are stored as text.
    pub(crate) fn copied(&self) -> Result<Arc<Box<str>>, SqlError> {
        if let Some(copy) = self.copy.and_then(OnceCell::get) {
            return Ok(Arc::clone(copy));
        }
        let copy = Arc::new(values::work::owned_text(self.text)?);
        Ok(Arc::clone(self.copy.map_or(&copy, |kept| kept.get_or_init(|| Arc::clone(&copy)))))
    }

    /// The statement's range.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}
