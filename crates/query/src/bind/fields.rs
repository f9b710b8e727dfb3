//! Parts of values: the fields of rows, `row.*` included, and the elements of arrays.
//!
//! What must hold:
//!
//! 1. The names of a record's fields come from the expression that makes it, or from its register.
//!    A record without known names has no fields to select.
//! 2. The place of a field counts from 0 here and in the call that selects it.
//! 3. A record that is read several times is copied through [`Expr::copied`], which asks for
//!    memory.

use pg_query::NodeEnum;
use pg_query::protobuf::{AIndirection, Node};

use super::location::optional_location;
use super::{Binder, inner};
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::error::{SqlError, SqlState};
use values::types::array::{MAX_DIMENSIONS, too_many_dimensions};
use values::types::{self, Type, oid};

/// Whether a node ends in a star.
pub(super) fn has_star(node: &Node) -> bool {
    let last = match &node.node {
        Some(NodeEnum::ColumnRef(reference)) => reference.fields.last(),
        Some(NodeEnum::AIndirection(indirection)) => indirection.indirection.last(),
        _ => None,
    };
    last.is_some_and(|node| matches!(node.node, Some(NodeEnum::AStar(_))))
}

impl Binder<'_> {
    /// The names and values that a node with a star at its end stands for: `*`, `table.*` or
    /// `(row).*`.
    pub(crate) fn star_of(&mut self, node: &Node) -> Result<Option<Vec<(String, Expr)>>, SqlError> {
        match inner(node)? {
            _ if !has_star(node) => Ok(None),
            NodeEnum::ColumnRef(reference) => self.star(reference).map(Some),
            NodeEnum::AIndirection(indirection) => self.row_star(indirection).map(Some),
            _ => Ok(None),
        }
    }

    /// `(row).*`
    fn row_star(&mut self, indirection: &AIndirection) -> Result<Vec<(String, Expr)>, SqlError> {
        let record = match indirection.indirection.as_slice() {
            [_] => self.expr_of(indirection.arg.as_deref())?,
            [steps @ .., _] => {
                let inside = AIndirection { arg: indirection.arg.clone(), indirection: steps.to_vec() };
                self.indirection(&inside)?
            }
            [] => return Err(SqlError::internal("a selection of nothing")),
        };
        if record.type_().oid != oid::RECORD {
            let message = format!("type {} is not composite", record.type_());
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        let Some(names) = self.field_names(&record) else {
            let message = "record type has not been registered";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        };
        let mut columns = Vec::with_capacity(names.len());
        for (place, (name, type_)) in names.into_iter().enumerate() {
            columns.push((name, field_of(record.copied()?, place, type_)?));
        }
        Ok(columns)
    }

    /// The fields of a row value, if known.
    pub(crate) fn field_names(&self, expr: &Expr) -> Option<Vec<(String, Type)>> {
        match expr {
            Expr::Column { register, type_ } if type_.oid == oid::RECORD => {
                self.records.get(register).cloned()
            }
            Expr::Row { fields, names } => {
                let name = |at: usize| match names {
                    Some(names) => names.get(at).cloned().unwrap_or_default(),
                    None => format!("f{}", at + 1),
                };
                Some(fields.iter().enumerate().map(|(at, field)| (name(at), field.type_())).collect())
            }
            // A row that an outer join may leave out.
            Expr::Case(case) => self.field_names(&case.otherwise),
            Expr::Shared(shared) => self.field_names(&shared.body),
            _ => None,
        }
    }

    /// `(row).name`
    fn field(&mut self, indirection: &AIndirection, name: &str) -> Result<Expr, SqlError> {
        let start = optional_location(indirection.arg.as_deref());
        let record = self.expr_of(indirection.arg.as_deref())?;
        if record.type_().oid != oid::RECORD {
            return Err(self.error(
                SqlState::WRONG_OBJECT_TYPE,
                format!(
                    "column notation .{name} applied to type {}, which is not a composite type",
                    record.type_()
                ),
                start,
            ));
        }
        let fields = self.field_names(&record).unwrap_or_default();
        let Some(place) = fields.iter().position(|(field, _)| field == name) else {
            return Err(self.error(
                SqlState::UNDEFINED_COLUMN,
                format!("could not identify column \"{name}\" in record data type"),
                start,
            ));
        };
        field_of(record, place, fields[place].1)
    }

    /// Subscripts and field selections.
    pub(super) fn indirection(&mut self, indirection: &AIndirection) -> Result<Expr, SqlError> {
        if let [step] = indirection.indirection.as_slice()
            && let NodeEnum::String(name) = inner(step)?
        {
            return self.field(indirection, &name.sval);
        }
        let start = optional_location(indirection.arg.as_deref());
        let array = self.expr_of(indirection.arg.as_deref())?;
        let mut indexes = Vec::new();
        for step in &indirection.indirection {
            match inner(step)? {
                NodeEnum::AIndices(index) if !index.is_slice => {
                    let index = self.expr_of(index.uidx.as_deref())?;
                    let index =
                        self.built(functions::cast(index, Type::INT4, CastContext::Assignment), start)?;
                    indexes.push(index);
                }
                NodeEnum::AIndices(_) => return Err(self.unsupported("an array slice", start)),
                _ => return Err(self.unsupported("selecting a field of a row value", start)),
            }
        }
        if indexes.len() > MAX_DIMENSIONS {
            return Err(too_many_dimensions(indexes.len()));
        }
        let Some(element) = types::element_of(array.type_().oid) else {
            return Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!("cannot subscript type {} because it does not support subscripting", array.type_()),
                start,
            ));
        };
        let type_ = Type::with_modifier(element, array.type_().modifier);
        Ok(Expr::Subscript { array: Box::new(array), indexes, type_ })
    }
}

/// A field of a row value, by position.
fn field_of(record: Expr, place: usize, type_: Type) -> Result<Expr, SqlError> {
    match record {
        Expr::Row { mut fields, .. } => Ok(fields.swap_remove(place)),
        record => functions::record_field(record, place, type_),
    }
}
