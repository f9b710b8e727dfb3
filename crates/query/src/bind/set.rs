//! UNION, INTERSECT, EXCEPT and VALUES.
//!
//! A chain of operations becomes one operation with many sides, applied from left to right. What
//! must hold: the columns of all its sides have the same types.

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, SelectStmt, SetOperation};

use super::location::location;
use super::{Binder, Clause, inner};
use crate::bound::{Distinct, FromItem, OutputColumn, Query, QueryBody, Source};
use crate::plan::SetKind;
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

impl Binder<'_> {
    /// Binds a set operation. A column whose sides are all untyped literals becomes text. A chain
    /// of operations becomes one operation with many sides, so that a long chain nests no deeper
    /// than a short one.
    pub(crate) fn set_operation(&mut self, select: &SelectStmt) -> Result<Query, SqlError> {
        let (first, others) = chain(select)?;
        let mut sides = vec![self.query(first, Some(false))?];
        let mut steps: Vec<(SetKind, bool)> = Vec::with_capacity(others.len());
        for (op, all, other) in others {
            let (kind, name) = match SetOperation::try_from(op) {
                Ok(SetOperation::SetopIntersect) => (SetKind::Intersect, "INTERSECT"),
                Ok(SetOperation::SetopExcept) => (SetKind::Except, "EXCEPT"),
                _ => (SetKind::Union, "UNION"),
            };
            let starts = starts_of_columns(other);
            let start = |index: usize| starts.get(index).copied().unwrap_or(-1);
            let other = self.query(other, Some(false))?;
            if sides[0].output.len() != other.output.len() {
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    format!("each {name} query must have the same number of columns"),
                    start(0),
                ));
            }
            let mut common = Vec::with_capacity(other.output.len());
            for index in 0..other.output.len() {
                let types = [sides[0].output[index].type_, other.output[index].type_];
                let found = functions::common_type(name, &types);
                common.push(found.map_err(|error| error.at(self.position(start(index))))?);
            }
            // Operations that compare rows use the types of the sides seen so far.
            let is_new = sides[0].output.iter().zip(&common).any(|(column, common)| column.type_ != *common);
            if is_new && steps.iter().any(|step| *step != (SetKind::Union, true)) {
                let so_far = self.set_query(std::mem::take(&mut sides), std::mem::take(&mut steps));
                sides.push(so_far);
            }
            sides.push(other);
            steps.push((kind, all));
            for (index, common) in common.into_iter().enumerate() {
                sides
                    .iter_mut()
                    .try_for_each(|side| self.coerce_output(side, index, common, CastContext::Implicit))?;
            }
        }
        let mut query = self.set_query(sides, steps);
        query.order = self.set_order(&select.sort_clause, &query.output)?;
        Ok(query)
    }

    /// Combines the sides, whose columns have the same types, by their operations.
    fn set_query(&mut self, sides: Vec<Query>, steps: Vec<(SetKind, bool)>) -> Query {
        let columns = sides.first().map_or(&[][..], |first| &first.output);
        let columns: Vec<(String, Type)> =
            columns.iter().map(|column| (column.name.clone(), column.type_)).collect();
        let column = |(name, type_)| OutputColumn { name, type_, register: self.register(), origin: None };
        let output: Vec<OutputColumn> = columns.into_iter().map(column).collect();
        let registers = output.iter().map(|column| column.register).collect();
        Query::of(QueryBody::Set { sides, steps, output: registers }, output)
    }

    /// Casts an output column of a query to a type. A computed target is cast in place; for
    /// anything else the cast becomes a new target. Untyped literals get their type this way.
    pub(crate) fn coerce_output(
        &mut self,
        query: &mut Query,
        index: usize,
        type_: Type,
        context: CastContext,
    ) -> Result<(), SqlError> {
        let source = query.output[index].type_;
        let register = query.output[index].register;
        if source == type_ {
            return Ok(());
        }
        // Comparisons and sorts use the columns' own types. After the cast, several values may
        // become one.
        if matches!(&query.body, QueryBody::Set { .. })
            || (matches!(&query.body, QueryBody::Values { .. }) && !query.order.is_empty())
        {
            self.wrap(query);
        }
        let sorted =
            query.order.iter().any(|key| super::alike::same(&key.expr, &Expr::column(register, source)));
        match &mut query.body {
            QueryBody::Select(select)
                if source.oid != oid::UNKNOWN || select.targets.iter().any(|t| t.1 == register) =>
            {
                let distinct = !matches!(select.distinct, Distinct::No) && source.oid != oid::UNKNOWN;
                let shared = sorted
                    || distinct
                    || query.output.iter().filter(|column| column.register == register).count() > 1;
                let computed = select.targets.iter().position(|(_, target)| *target == register);
                match computed {
                    Some(target) if !shared => {
                        let expr = std::mem::replace(&mut select.targets[target].0, Expr::null(type_));
                        select.targets[target].0 = self.built(functions::cast(expr, type_, context), -1)?;
                    }
                    _ => {
                        let value =
                            self.built(functions::cast(Expr::column(register, source), type_, context), -1)?;
                        let fresh = self.register();
                        if let QueryBody::Select(select) = &mut query.body {
                            select.targets.push((value, fresh));
                        }
                        query.output[index].register = fresh;
                    }
                }
            }
            QueryBody::Values { rows, .. } => {
                for row in rows {
                    let expr = std::mem::replace(&mut row[index], Expr::null(type_));
                    row[index] = self.built(functions::cast(expr, type_, context), -1)?;
                }
            }
            QueryBody::Set { .. } | QueryBody::Select(_) => {
                return Err(SqlError::internal("an untyped output column is not computed"));
            }
        }
        query.output[index].type_ = type_;
        for key in &mut query.order {
            if let Expr::Column { register: sorted, type_: sorted_type } = &mut key.expr
                && *sorted == register
                && query.output[index].register == register
            {
                *sorted_type = type_;
            }
        }
        Ok(())
    }

    /// Makes a query the FROM of another one with the same columns.
    fn wrap(&mut self, query: &mut Query) {
        let outer = Query::of(QueryBody::Select(Box::default()), query.output.clone());
        let inner = std::mem::replace(query, outer);
        let source = self.source();
        if let QueryBody::Select(select) = &mut query.body {
            select.from = Some(FromItem::Source(source, Source::Query(Box::new(inner))));
        }
    }

    /// VALUES as a query of its own.
    pub(crate) fn values(&mut self, select: &SelectStmt, resolve: bool) -> Result<Query, SqlError> {
        let mut rows: Vec<Vec<Expr>> = Vec::with_capacity(select.values_lists.len());
        for list in &select.values_lists {
            let NodeEnum::List(list) = inner(list)? else {
                return Err(SqlError::internal("VALUES without a list"));
            };
            let row = self.in_clause(Clause::Values, |binder| binder.exprs(&list.items))?;
            if rows.first().is_some_and(|first| first.len() != row.len()) {
                let start = list.items.first().map_or(-1, location);
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    "VALUES lists must all be the same length",
                    start,
                ));
            }
            rows.push(row);
        }
        let width = rows.first().map_or(0, Vec::len);
        super::select::at_most_targets(width)?;
        let mut output = Vec::with_capacity(width);
        for index in 0..width {
            let open = rows.iter().all(|row| row[index].type_().oid == oid::UNKNOWN);
            let type_ = if open && !resolve {
                Type::UNKNOWN
            } else {
                let starts = starts_of(&select.values_lists, index);
                let column: Vec<Expr> = rows
                    .iter_mut()
                    .map(|row| std::mem::replace(&mut row[index], Expr::boolean(true)))
                    .collect();
                let (column, type_) = self.unified("VALUES", column, &starts)?;
                for (row, expr) in rows.iter_mut().zip(column) {
                    row[index] = expr;
                }
                type_
            };
            let name = format!("column{}", index + 1);
            output.push(OutputColumn { name, type_, register: self.register(), origin: None });
        }
        let order = self.set_order(&select.sort_clause, &output)?;
        let registers = output.iter().map(|column| column.register).collect();
        let sublinks = std::mem::take(&mut self.level().sublinks);
        Ok(Query {
            tables: Vec::new(),
            body: QueryBody::Values { rows, output: registers, sublinks },
            output,
            order,
            limit: None,
            offset: None,
            limit_sublinks: Vec::new(),
            ties: false,
            locks: Vec::new(),
        })
    }
}

/// A side of a chain: the operation before it, whether that is ALL, and the query.
type ChainSide<'a> = (i32, bool, &'a SelectStmt);

/// The sides of a chain of set operations from left to right: the first, and the others. The chain
/// extends to the left while the left side is a set operation without clauses of its own.
fn chain(select: &SelectStmt) -> Result<(&SelectStmt, Vec<ChainSide<'_>>), SqlError> {
    let mut others = Vec::new();
    let mut outer = select;
    loop {
        let (Some(left), Some(right)) = (&outer.larg, &outer.rarg) else {
            return Err(SqlError::internal("set operation without sides"));
        };
        if [outer, left, right].into_iter().any(|query| !query.locking_clause.is_empty()) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT",
            ));
        }
        others.push((outer.op, outer.all, &**right));
        let goes_on = left.larg.is_some()
            && left.with_clause.is_none()
            && left.sort_clause.is_empty()
            && left.limit_count.is_none()
            && left.limit_offset.is_none();
        if !goes_on {
            others.reverse();
            return Ok((&**left, others));
        }
        outer = left;
    }
}

/// The locations of a query's columns. For a set operation: those of its left side.
fn starts_of_columns(select: &SelectStmt) -> Vec<i32> {
    let start = |target: &Node| match &target.node {
        Some(NodeEnum::ResTarget(target)) => target.val.as_deref().map_or(-1, location),
        _ => -1,
    };
    match &select.larg {
        Some(left) => starts_of_columns(left),
        None => select.target_list.iter().map(start).collect(),
    }
}

/// The locations of one column's values.
fn starts_of(lists: &[Node], index: usize) -> Vec<i32> {
    let start = |list: &Node| match &list.node {
        Some(NodeEnum::List(list)) => list.items.get(index).map_or(-1, location),
        _ => -1,
    };
    lists.iter().map(start).collect()
}
