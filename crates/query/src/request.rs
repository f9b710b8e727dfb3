//! The input of a compilation: the definitions it is bound against, and its part of the
//! client's text.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use catalog::Catalog;
use values::error::SqlError;

use crate::normalize::Literal;

/// The definitions that a statement is compiled against.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The catalog as the transaction sees it.
    pub catalog: &'a Arc<Catalog>,
    /// Setting `search_path`, as schema names.
    pub search_path: &'a [String],
    /// How many rows a table has now, by its OID, if that is known without effort.
    pub rows: fn(&Catalog, u32) -> Option<f64>,
}

/// The statement to compile.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The text the client sent: positions in errors refer to it.
    pub text: &'a str,
    /// The statement's part of it, as [`crate::parse::split`] gives it.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Declared types of parameters (OIDs; 0 or missing = to be inferred). None: the text may have
    /// no parameters.
    pub parameters: Option<&'a [u32]>,
    /// The text's literals as normalised; those the plan can do without become parameters after the
    /// declared ones. Empty for none (EXPLAIN, PREPARE, several statements in one text).
    pub literals: &'a [Literal],
    /// Where a text of several statements keeps its copy for those that are compiled beside the
    /// core.
    pub copy: Option<&'a OnceCell<Arc<Box<str>>>>,
}

impl<'a> Request<'a> {
    /// A whole text without declared parameters and lifted literals.
    #[must_use]
    pub fn plain(text: &'a str) -> Request<'a> {
        Request { text, start: 0, end: text.len(), parameters: Some(&[]), literals: &[], copy: None }
    }

    /// The text for a thread beside the core, which needs all of it: for positions, and for what is
    /// kept with the text.
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
