//! Sequences as definitions describe them.

use super::QualifiedName;
use catalog::Identity;
use values::types::Type;

/// A sequence created together with a column.
#[derive(Debug, Clone)]
pub struct OwnedSequence {
    /// SEQUENCE NAME; None = PostgreSQL's default name.
    pub name: Option<QualifiedName>,
    /// Its options.
    pub options: SequenceOptions,
    /// GENERATED ... AS IDENTITY instead of SERIAL.
    pub identity: Option<Identity>,
}

/// The options of a sequence. None means PostgreSQL's default; in ALTER, the option stays
/// unchanged.
#[derive(Debug, Clone, Default)]
pub struct SequenceOptions {
    /// AS type.
    pub type_: Option<Type>,
    /// INCREMENT BY
    pub increment: Option<i64>,
    /// MINVALUE; Some(None) = NO MINVALUE
    pub minimum: Option<Option<i64>>,
    /// MAXVALUE; Some(None) = NO MAXVALUE
    pub maximum: Option<Option<i64>>,
    /// START WITH
    pub start: Option<i64>,
    /// RESTART; Some(None) = from its start
    pub restart: Option<Option<i64>>,
    /// CACHE
    pub cache: Option<i64>,
    /// CYCLE
    pub cycle: Option<bool>,
    /// OWNED BY: table and column; Some(None) = NONE.
    pub owned_by: Option<Option<(QualifiedName, String)>>,
}

impl SequenceOptions {
    /// Whether ALTER SEQUENCE with these options changes the values of nextval, or may change them.
    /// Only OWNED BY does not.
    #[must_use]
    pub fn changes_numbers(&self) -> bool {
        self.type_.is_some()
            || self.increment.is_some()
            || self.minimum.is_some()
            || self.maximum.is_some()
            || self.start.is_some()
            || self.restart.is_some()
            || self.cache.is_some()
            || self.cycle.is_some()
    }
}
