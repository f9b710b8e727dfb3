//! Expressions that the catalog keeps as text: DEFAULT and CHECK.
//!
//! A constant in such a text may name a relation. Binding finds the relation, and the text keeps
//! its OID. What must hold: the statement locks the relation as it locks its tables. If another
//! session drops the relation meanwhile, it is looked up again. Nobody can drop it before the
//! definition commits.

use pg_query::NodeEnum;
use pg_query::protobuf::{Constraint, Node, TypeCast, TypeName};
use txn::TableLock;

use super::draft_column;
use crate::bind::{Binder, Clause};
use crate::parse::expression_text;
use crate::parse::rewrite::{numbered_relations, relation_constants};
use crate::plan::ColumnDefinition;
use catalog::Relation;
use catalog::stored;
use expressions::function::Volatility;
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

impl Binder<'_> {
    /// Gives a column its DEFAULT.
    pub(super) fn column_default(
        &mut self,
        constraint: &Constraint,
        column: &mut ColumnDefinition,
    ) -> Result<(), SqlError> {
        let Some(expression) = constraint.raw_expr.as_deref() else { return Ok(()) };
        let (text, volatility) = self.default_expression(expression, &column.name, column.type_)?;
        column.default = Some(text);
        column.volatile_default = volatility == Volatility::Volatile;
        Ok(())
    }

    /// The text of a DEFAULT, after binding it to the column once, and its volatility.
    pub(super) fn default_expression(
        &mut self,
        expression: &Node,
        name: &str,
        type_: Type,
    ) -> Result<(String, Volatility), SqlError> {
        let draft = draft_column(name, type_, false);
        let bound = self.scoped(|binder| {
            binder.in_clause(Clause::Default, |binder| {
                let value = binder.expr(expression)?;
                binder.assigned(value, &draft, -1)
            })
        })?;
        // A bare constant gets the column's type.
        let is_constant = matches!(expression.node, Some(NodeEnum::AConst(_)));
        let text = match type_.oid == oid::REGCLASS && is_constant {
            true => self.kept_text(&cast_to_regclass(expression))?,
            false => self.kept_text(expression)?,
        };
        Ok((text, bound.volatility()))
    }

    /// The text of an expression. Relations that its constants name are written as OIDs and locked.
    /// Names that the statement's own sequences may get stay until the sequences exist.
    ///
    /// # Errors
    /// 42P01 for a relation that does not exist.
    pub(super) fn kept_text(&mut self, expression: &Node) -> Result<String, SqlError> {
        let path = self.context.search_path;
        for (name, at) in relation_constants(expression) {
            let locked = match self.catalog().named_by_constant(path, &name) {
                Some(Relation::Table(table) | Relation::Index(table, _)) if table.is_virtual() => continue,
                Some(Relation::Table(table) | Relation::Index(table, _)) => table.oid,
                Some(Relation::Sequence(sequence)) => sequence.oid,
                None if stored::is_number(&name) || self.makes_sequences => continue,
                None => {
                    return Err(self.error(SqlState::UNDEFINED_TABLE, stored::missing(&name), at));
                }
            };
            self.lock(locked, TableLock::AccessShare);
        }
        let found = |name: &str| self.catalog().named_by_constant(path, name).map(|relation| relation.oid());
        numbered_relations(&expression_text(expression)?, &found)
    }
}

fn cast_to_regclass(constant: &Node) -> Node {
    let name = pg_query::protobuf::String { sval: "regclass".to_owned() };
    let names = vec![Node { node: Some(NodeEnum::String(name)) }];
    let type_name = Some(TypeName { names, typemod: -1, location: -1, ..TypeName::default() });
    let cast = TypeCast { arg: Some(Box::new(constant.clone())), type_name, location: -1 };
    Node { node: Some(NodeEnum::TypeCast(Box::new(cast))) }
}
