//! The order of a column's constraints and attributes: which attributes may follow a constraint,
//! and which constraints may occur only once.

use pg_query::protobuf::ConstrType;

use crate::bind::Binder;
use values::error::{SqlError, SqlState};

/// The attributes (DEFERRABLE, ENFORCED and the like) seen after a column's constraint.
#[derive(Default)]
pub(super) struct Attributes {
    constraint: Option<ConstrType>,
    deferrability: bool,
    initially: bool,
    enforcement: bool,
}

impl Attributes {
    /// Raises 42601 at an attribute that is repeated or that follows no constraint which allows it.
    pub(super) fn meet(
        &mut self,
        binder: &Binder<'_>,
        kind: ConstrType,
        location: i32,
    ) -> Result<(), SqlError> {
        use ConstrType as Kind;
        let deferrable =
            matches!(self.constraint, Some(Kind::ConstrPrimary | Kind::ConstrUnique | Kind::ConstrForeign));
        let enforceable = matches!(self.constraint, Some(Kind::ConstrCheck | Kind::ConstrForeign));
        let (clause, clauses, fits, seen) = match kind {
            Kind::ConstrAttrDeferrable => {
                ("DEFERRABLE", "DEFERRABLE/NOT DEFERRABLE", deferrable, &mut self.deferrability)
            }
            Kind::ConstrAttrNotDeferrable => {
                ("NOT DEFERRABLE", "DEFERRABLE/NOT DEFERRABLE", deferrable, &mut self.deferrability)
            }
            Kind::ConstrAttrDeferred => {
                ("INITIALLY DEFERRED", "INITIALLY IMMEDIATE/DEFERRED", deferrable, &mut self.initially)
            }
            Kind::ConstrAttrImmediate => {
                ("INITIALLY IMMEDIATE", "INITIALLY IMMEDIATE/DEFERRED", deferrable, &mut self.initially)
            }
            Kind::ConstrAttrEnforced => {
                ("ENFORCED", "ENFORCED/NOT ENFORCED", enforceable, &mut self.enforcement)
            }
            Kind::ConstrAttrNotEnforced => {
                ("NOT ENFORCED", "ENFORCED/NOT ENFORCED", enforceable, &mut self.enforcement)
            }
            _ => {
                *self = Attributes { constraint: Some(kind), ..Attributes::default() };
                return Ok(());
            }
        };
        let message = if !fits {
            format!("misplaced {clause} clause")
        } else if std::mem::replace(seen, true) {
            format!("multiple {clauses} clauses not allowed")
        } else {
            return Ok(());
        };
        Err(binder.error(SqlState::SYNTAX_ERROR, message, location))
    }
}

/// The source of a column's values. There is at most one DEFAULT or identity.
pub(super) struct OneValue<'c> {
    pub(super) column: &'c str,
    pub(super) table: &'c str,
    pub(super) default: bool,
    pub(super) identity: bool,
}

impl OneValue<'_> {
    /// Raises 42601 at the second one.
    pub(super) fn meet(
        &mut self,
        binder: &Binder<'_>,
        constraint: ConstrType,
        location: i32,
    ) -> Result<(), SqlError> {
        let twice = match constraint {
            ConstrType::ConstrDefault => {
                std::mem::replace(&mut self.default, true).then_some("multiple default values")
            }
            ConstrType::ConstrIdentity => {
                std::mem::replace(&mut self.identity, true).then_some("multiple identity specifications")
            }
            _ => return Ok(()),
        };
        let both = (self.default && self.identity).then_some("both default and identity");
        let Some(what) = twice.or(both) else { return Ok(()) };
        let specified = if what.ends_with("specifications") { "" } else { " specified" };
        let message = format!("{what}{specified} for column \"{}\" of table \"{}\"", self.column, self.table);
        Err(binder.error(SqlState::SYNTAX_ERROR, message, location))
    }
}
