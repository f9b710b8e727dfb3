//! UNION, INTERSECT, EXCEPT and VALUES.

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, SelectStmt, SetOperation};

use super::expr::location;
use super::{Binder, Clause, Distinct, FromItem, OutputColumn, Query, QueryBody, Source, inner};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::functions::{self, CastContext};
use crate::plan::SetKind;
use crate::types::{Type, oid};

impl Binder<'_> {
    /// A set operation. Columns of which both sides are literals without a type become text.
    pub(crate) fn set_operation(&mut self, select: &SelectStmt) -> Result<Query, SqlError> {
        let (kind, name) = match SetOperation::try_from(select.op) {
            Ok(SetOperation::SetopIntersect) => (SetKind::Intersect, "INTERSECT"),
            Ok(SetOperation::SetopExcept) => (SetKind::Except, "EXCEPT"),
            _ => (SetKind::Union, "UNION"),
        };
        let sides = [&select.larg, &select.rarg].into_iter().flatten();
        if !select.locking_clause.is_empty() || sides.into_iter().any(|side| !side.locking_clause.is_empty())
        {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT",
            ));
        }
        let (Some(left), Some(right)) = (&select.larg, &select.rarg) else {
            return Err(SqlError::internal("set operation without sides"));
        };
        let mut left = self.query(left, Some(false))?;
        let starts = starts_of_columns(right);
        let start = |index: usize| starts.get(index).copied().unwrap_or(-1);
        let mut right = self.query(right, Some(false))?;
        if left.output.len() != right.output.len() {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                format!("each {name} query must have the same number of columns"),
                start(0),
            ));
        }
        let mut output = Vec::with_capacity(left.output.len());
        for index in 0..left.output.len() {
            let types = [left.output[index].type_, right.output[index].type_];
            let common = functions::common_type(name, &types)
                .map_err(|error| error.at(self.position(start(index))))?;
            self.coerce_output(&mut left, index, common)?;
            self.coerce_output(&mut right, index, common)?;
            output.push(OutputColumn {
                name: left.output[index].name.clone(),
                type_: common,
                register: self.register(),
                origin: None,
            });
        }
        let order = self.set_order(&select.sort_clause, &output)?;
        let registers = output.iter().map(|column| column.register).collect();
        Ok(Query {
            tables: Vec::new(),
            body: QueryBody::Set {
                kind,
                all: select.all,
                left: Box::new(left),
                right: Box::new(right),
                output: registers,
            },
            output,
            order,
            limit: None,
            offset: None,
            limit_sublinks: Vec::new(),
            ties: false,
            locks: Vec::new(),
        })
    }

    /// Casts an output column of a query to a type: a computed target where it is made, anything else by making it
    /// one. Literals without a type get theirs this way.
    pub(crate) fn coerce_output(
        &mut self,
        query: &mut Query,
        index: usize,
        type_: Type,
    ) -> Result<(), SqlError> {
        let given = query.output[index].type_;
        let register = query.output[index].register;
        if given == type_ {
            return Ok(());
        }
        // What compares or sorts rows does so by the columns' own types, of which several values may become one.
        if matches!(&query.body, QueryBody::Set { .. })
            || (matches!(&query.body, QueryBody::Values { .. }) && !query.order.is_empty())
        {
            self.wrap(query);
        }
        let sorted =
            query.order.iter().any(|key| super::order::same(&key.expr, &Expr::column(register, given)));
        match &mut query.body {
            QueryBody::Select(select)
                if given.oid != oid::UNKNOWN || select.targets.iter().any(|t| t.1 == register) =>
            {
                let distinct = !matches!(select.distinct, Distinct::No) && given.oid != oid::UNKNOWN;
                let shared = sorted
                    || distinct
                    || query.output.iter().filter(|column| column.register == register).count() > 1;
                let computed = select.targets.iter().position(|(_, target)| *target == register);
                match computed {
                    Some(target) if !shared => {
                        let expr = std::mem::replace(&mut select.targets[target].0, Expr::null(type_));
                        select.targets[target].0 =
                            self.built(functions::cast(expr, type_, CastContext::Implicit), -1)?;
                    }
                    _ => {
                        let value = self.built(
                            functions::cast(Expr::column(register, given), type_, CastContext::Implicit),
                            -1,
                        )?;
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
                    row[index] = self.built(functions::cast(expr, type_, CastContext::Implicit), -1)?;
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
        let outer = Query {
            tables: Vec::new(),
            body: QueryBody::Select(Box::default()),
            output: query.output.clone(),
            order: Vec::new(),
            limit: None,
            offset: None,
            limit_sublinks: Vec::new(),
            ties: false,
            locks: Vec::new(),
        };
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

/// Where a query's columns are: those of a set operation are where its left side's are.
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

/// Where the values of one column are.
fn starts_of(lists: &[Node], index: usize) -> Vec<i32> {
    let start = |list: &Node| match &list.node {
        Some(NodeEnum::List(list)) => list.items.get(index).map_or(-1, location),
        _ => -1,
    };
    lists.iter().map(start).collect()
}
