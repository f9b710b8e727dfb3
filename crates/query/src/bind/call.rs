//! Calls of functions and aggregates, and subqueries in expressions.
//!
//! A call of an aggregate becomes a register of the level whose rows it is computed over. A
//! subquery becomes a register, and [`crate::bound::Sublink`] describes how to fill it.

use pg_query::NodeEnum;
use pg_query::protobuf::{CoercionForm, FuncCall, Node, SubLink, SubLinkType};

use super::location::location;
use super::{Binder, Clause, inner, inner_of};
use crate::bound::{Query, Sublink};
use crate::parse::strings;
use crate::plan::{AggregateCall, SubqueryKind};
use expressions::expr::Expr;
use expressions::function::Aggregate;
use expressions::function::WindowFunction;
use expressions::functions::{self, Bound, CastContext};
use values::error::{SqlError, SqlState};
use values::types::{self, Type, oid};

/// Numbers of aggregates, windows and sets found before a call and its arguments are bound.
pub(super) struct Before {
    /// Columns read above the grouping of each level.
    uses: Vec<usize>,
    /// Aggregates of each level.
    aggregates: Vec<usize>,
    /// Window functions of the present query.
    pub(super) windows: usize,
    /// Set-returning functions of the present query.
    pub(super) sets: usize,
}

impl Binder<'_> {
    /// A function call in an expression.
    pub(crate) fn call(&mut self, call: &FuncCall) -> Result<Expr, SqlError> {
        if call.funcformat == CoercionForm::CoerceSqlSyntax as i32
            && strings(&call.funcname).last().is_some_and(|name| *name == "extract")
        {
            self.refuse_parameter(call.args.first())?;
        }
        // DISTINCT matches the call's sort keys with its arguments, so their constants stay
        // constants.
        let matched = call.agg_distinct && !call.agg_order.is_empty();
        if matched && self.lift {
            return self.without_lifting(|binder| binder.call(call));
        }
        let before = Before {
            uses: self.levels.iter().map(|level| level.uses.len()).collect(),
            aggregates: self.levels.iter().map(|level| level.aggregates.len()).collect(),
            windows: self.window_calls(),
            sets: self.sets_met(),
        };
        match self.resolve_call(call)? {
            Bound::Scalar(expr) => {
                self.refuse_aggregate_syntax(call)?;
                Ok(expr)
            }
            Bound::Aggregate { function, arguments } => {
                self.check_star(call)?;
                if let Some(over) = &call.over {
                    let type_ = function.result;
                    let function = WindowFunction::Aggregate(function);
                    return self.window_call(call, over, &before, (function, arguments, type_));
                }
                self.aggregate(call, function, arguments, &before)
            }
            Bound::Window { function, arguments, type_ } => match &call.over {
                Some(over) => self.window_call(call, over, &before, (function, arguments, type_)),
                None => Err(self.no_over(call)),
            },
            Bound::Set { function, arguments, columns } => {
                self.refuse_aggregate_syntax(call)?;
                self.set_call(call, function, arguments, &columns)
            }
        }
    }

    /// The error 42809 for a window function without OVER.
    pub(super) fn no_over(&self, call: &FuncCall) -> SqlError {
        let message = format!("window function {} requires an OVER clause", function_name(call));
        self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location)
    }

    /// Refuses `f()` for an aggregate; an aggregate over all rows is written `f(*)`.
    fn check_star(&self, call: &FuncCall) -> Result<(), SqlError> {
        if !call.args.is_empty() || call.agg_star || call.agg_within_group {
            return Ok(());
        }
        let name = function_name(call);
        let message = format!("{name}(*) must be used to call a parameterless aggregate function");
        Err(self.error(SqlState::WRONG_OBJECT_TYPE, message, call.location))
    }

    /// Number of window functions found in the present query.
    pub(super) fn window_calls(&mut self) -> usize {
        self.level().windows.iter().map(|window| window.calls.len()).sum()
    }

    /// The function or aggregate that a call's name and arguments stand for.
    pub(crate) fn resolve_call(&mut self, call: &FuncCall) -> Result<Bound, SqlError> {
        let name = match *strings(&call.funcname).as_slice() {
            [name] | ["pg_catalog", name] => name.to_owned(),
            ["information_schema", name @ "_pg_expandarray"] => name.to_owned(),
            ref names => {
                let name = names.join(".");
                let known = names.first().is_some_and(|schema| self.catalog().schema(schema).is_some());
                let (code, message) = if known || names.len() != 2 {
                    let types: Vec<String> =
                        self.exprs(&call.args)?.iter().map(|argument| argument.type_().to_string()).collect();
                    let types = types.join(", ");
                    (SqlState::UNDEFINED_FUNCTION, format!("function {name}({types}) does not exist"))
                } else {
                    (SqlState::INVALID_SCHEMA_NAME, format!("schema \"{}\" does not exist", names[0]))
                };
                return Err(self.error(code, message, call.location));
            }
        };
        let named = |argument: &Node| matches!(argument.node, Some(NodeEnum::NamedArgExpr(_)));
        let arguments = if call.args.iter().any(named) {
            self.arguments_by_name(&name, call)?
        } else {
            self.exprs(&call.args)?
        };
        if name == "pg_partition_ancestors" {
            return Ok(no_ancestors());
        }
        self.refuse_untyped(&name, &arguments)?;
        // PostgreSQL gives no position when the types of polymorphic arguments do not fit.
        let bound =
            functions::function(&name, arguments, call.func_variadic).map_err(|error| match error.code {
                SqlState::DATATYPE_MISMATCH => error,
                _ => error.at(self.position(call.location)),
            })?;
        let parts: &[Expr] = match &bound {
            Bound::Scalar(expr) => std::slice::from_ref(expr),
            Bound::Aggregate { arguments, .. }
            | Bound::Window { arguments, .. }
            | Bound::Set { arguments, .. } => arguments,
        };
        for part in parts {
            self.note_parameters(part);
        }
        Ok(bound)
    }

    /// Raises 42P18 for a parameter that only a function of any type reads, so that nothing
    /// determines its type.
    fn refuse_untyped(&self, name: &str, arguments: &[Expr]) -> Result<(), SqlError> {
        let typed = match name {
            "concat" | "num_nulls" | "num_nonnulls" | "json_build_object" => 0,
            "concat_ws" | "format" => 1,
            _ => return Ok(()),
        };
        for argument in arguments.iter().skip(typed) {
            // Literals have the numbers after the parameters.
            if let Expr::Param { index, type_ } = argument
                && type_.oid == oid::UNKNOWN
                && (*index as usize) < self.parameters.len()
            {
                let message = format!("could not determine data type of parameter ${}", index + 1);
                return Err(SqlError::new(SqlState::INDETERMINATE_DATATYPE, message));
            }
        }
        Ok(())
    }

    /// Refuses DISTINCT, ORDER BY, FILTER and OVER on a function that is no aggregate.
    pub(super) fn refuse_aggregate_syntax(&self, call: &FuncCall) -> Result<(), SqlError> {
        let name = function_name(call);
        let what = if call.agg_star {
            format!("{name}(*) specified, but {name} is not an aggregate function")
        } else if call.agg_distinct {
            format!("DISTINCT specified, but {name} is not an aggregate function")
        } else if !call.agg_order.is_empty() {
            format!("ORDER BY specified, but {name} is not an aggregate function")
        } else if call.agg_filter.is_some() {
            format!("FILTER specified, but {name} is not an aggregate function")
        } else if call.over.is_some() {
            format!("OVER specified, but {name} is not a window function nor an aggregate function")
        } else {
            return Ok(());
        };
        Err(self.error(SqlState::WRONG_OBJECT_TYPE, what, call.location))
    }

    fn aggregate(
        &mut self,
        call: &FuncCall,
        function: Aggregate,
        arguments: Vec<Expr>,
        before: &Before,
    ) -> Result<Expr, SqlError> {
        if call.agg_within_group {
            return Err(self.unsupported("WITHIN GROUP", call.location));
        }
        let mut arguments = arguments;
        if call.agg_distinct {
            for (argument, node) in arguments.iter_mut().zip(&call.args) {
                let untyped = std::mem::replace(argument, Expr::boolean(true));
                *argument = self.sortable(untyped, location(node))?;
            }
        }
        let order = self.aggregate_order(call, &arguments)?;
        self.no_sets_since(
            before.sets,
            "aggregate function calls cannot contain set-returning function calls",
        )?;
        let filter = match call.agg_filter.as_deref() {
            Some(filter) => {
                Some(self.in_clause(Clause::Filter, |binder| binder.condition(Some(filter), "FILTER"))?)
            }
            None => None,
        };
        if self.window_calls() > before.windows {
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot contain window function calls",
                self.levels.last().map_or(-1, |level| level.window_at),
            ));
        }
        let output = self.register();
        let parts = arguments.iter().chain(order.iter().map(|key| &key.expr)).chain(&filter);
        let owner = self.aggregate_level(parts, &before.uses);
        let level = &self.levels[owner];
        if level.aggregates.len() > before.aggregates.get(owner).copied().unwrap_or(0) {
            let (message, at) = ("aggregate function calls cannot be nested", level.aggregate_at);
            return Err(self.error(SqlState::GROUPING_ERROR, message, at));
        }
        let clause = self.levels[owner].clause;
        if !clause.allows_aggregates() {
            let place = match clause {
                Clause::From if owner + 1 < self.levels.len() => "FROM clause of their own query level",
                _ => clause.name(),
            };
            return Err(self.error(
                SqlState::GROUPING_ERROR,
                format!("aggregate functions are not allowed in {place}"),
                call.location,
            ));
        }
        let level = &mut self.levels[owner];
        level.aggregate_at = call.location;
        level.calls_at.insert(output, call.location);
        level.aggregates.push(AggregateCall {
            function,
            arguments,
            distinct: call.agg_distinct,
            order,
            filter,
            output,
        });
        Ok(Expr::column(output, function.result))
    }

    /// The sort keys of an aggregate's ORDER BY. With DISTINCT each must be one of the arguments.
    fn aggregate_order(
        &mut self,
        call: &FuncCall,
        arguments: &[Expr],
    ) -> Result<Vec<crate::plan::SortKey>, SqlError> {
        let mut order = Vec::with_capacity(call.agg_order.len());
        for item in &call.agg_order {
            let mut key = self.plain_sort_key(item)?;
            self.find_twins();
            let twins = self.twins();
            if call.agg_distinct {
                // The argument may have been cast to the type that the function takes.
                let cast = |argument: &&Expr| {
                    functions::cast(key.expr.clone(), argument.type_(), CastContext::Implicit)
                        .is_ok_and(|cast| twins.same(argument, &cast))
                };
                if let Some(argument) = arguments.iter().find(cast) {
                    key.expr = argument.clone();
                }
            }
            if call.agg_distinct && !arguments.iter().any(|argument| twins.same(argument, &key.expr)) {
                let NodeEnum::SortBy(sort) = inner(item)? else { continue };
                return Err(self.error(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                    sort.node.as_deref().map_or(-1, location),
                ));
            }
            order.push(key);
        }
        Ok(order)
    }

    /// A subquery in an expression.
    pub(crate) fn sublink(&mut self, link: &SubLink) -> Result<Expr, SqlError> {
        let NodeEnum::SelectStmt(select) = inner_of(link.subselect.as_deref())? else {
            return Err(self.unsupported("this subquery", link.location));
        };
        // Checks and defaults are bound alone, without a plan that could run a subquery.
        let place = match self.level().clause {
            Clause::Check => Some("check constraint"),
            Clause::Default => Some("DEFAULT expression"),
            _ => None,
        };
        if let Some(place) = place {
            let message = format!("cannot use subquery in {place}");
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, link.location));
        }
        let kind = SubLinkType::try_from(link.sub_link_type).unwrap_or(SubLinkType::Undefined);
        let left = match (&link.testexpr, kind) {
            (Some(test), SubLinkType::AnySublink | SubLinkType::AllSublink) => match inner(test)? {
                NodeEnum::RowExpr(row) => self.expanded(&row.args)?,
                _ => vec![self.expr(test)?],
            },
            _ => Vec::new(),
        };
        let uses = self.level().uses.len();
        let query = self.query(select, None)?;
        let single = |binder: &Self| match query.output.as_slice() {
            [column] => Ok((Expr::column(column.register, column.type_), column.type_)),
            _ => Err(binder.error(
                SqlState::SYNTAX_ERROR,
                "subquery must return only one column",
                link.location,
            )),
        };
        let (kind, type_) = match kind {
            SubLinkType::ExistsSublink => {
                // The planner drops a limit that is a constant.
                self.refuse(query.limit.iter().flat_map(Expr::params));
                (SubqueryKind::Exists, Type::BOOL)
            }
            SubLinkType::ExprSublink => {
                let (value, type_) = single(self)?;
                (SubqueryKind::Scalar { value }, type_)
            }
            SubLinkType::ArraySublink => {
                let (value, element) = single(self)?;
                let array = match types::array_of(element.oid) {
                    Some(array) => array,
                    None if types::is_array(element.oid) => element.oid,
                    None => return Err(self.no_array_type(element, link.location)),
                };
                (SubqueryKind::Array { value, type_: Type::new(array) }, Type::new(array))
            }
            SubLinkType::AnySublink | SubLinkType::AllSublink => {
                let all = kind == SubLinkType::AllSublink;
                let operator = strings(&link.oper_name).last().copied().unwrap_or("=");
                if self.returns_set(&left) {
                    return Err(self.refused_set("row comparison operator", link.location));
                }
                (self.quantified(operator, left, &query, all, link.location)?, Type::BOOL)
            }
            _ => return Err(self.unsupported("this kind of subquery", link.location)),
        };
        let output = self.register();
        self.note_uses(output, uses);
        self.level().sublinks.push(Sublink { output, query, kind });
        Ok(Expr::column(output, type_))
    }

    /// The columns of a one-row subquery with `width` columns that a row is compared with.
    pub(super) fn row_sublink(
        &mut self,
        link: &SubLink,
        width: usize,
        location: i32,
    ) -> Result<Vec<Expr>, SqlError> {
        let NodeEnum::SelectStmt(select) = inner_of(link.subselect.as_deref())? else {
            return Err(self.unsupported("this subquery", link.location));
        };
        let uses = self.level().uses.len();
        let query = self.query(select, None)?;
        self.check_fields(width, &query, location)?;
        let types: Vec<Type> = query.output.iter().map(|column| column.type_).collect();
        let fields = query.output.iter().map(|column| Expr::column(column.register, column.type_));
        let value = Expr::Row { fields: fields.collect(), names: None };
        let output = self.register();
        self.note_uses(output, uses);
        self.level().sublinks.push(Sublink { output, query, kind: SubqueryKind::Scalar { value } });
        let record = Expr::column(output, Type::RECORD);
        let field = |(place, type_)| functions::record_field(record.clone(), place, type_);
        types.into_iter().enumerate().map(field).collect()
    }

    /// Raises 42601 if a subquery's number of columns differs from that of its comparison.
    fn check_fields(&self, width: usize, query: &Query, location: i32) -> Result<(), SqlError> {
        if width == query.output.len() {
            return Ok(());
        }
        let few = if query.output.len() < width { "few" } else { "many" };
        Err(self.error(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns"), location))
    }

    fn quantified(
        &mut self,
        operator: &str,
        left: Vec<Expr>,
        query: &Query,
        all: bool,
        location: i32,
    ) -> Result<SubqueryKind, SqlError> {
        self.check_fields(left.len(), query, location)?;
        let mut right: Vec<Expr> =
            query.output.iter().map(|column| Expr::column(column.register, column.type_)).collect();
        let mut left = left;
        if operator == "=" {
            // Both sides get one type, so that the subquery's rows can be hashed.
            for (a, b) in left.iter_mut().zip(&mut right) {
                if a.type_().oid != b.type_().oid
                    && let Some((x, y)) = functions::equal_sides(a, b)
                {
                    self.note_parameters(&x);
                    (*a, *b) = (x, y);
                }
            }
        }
        let pairs: Vec<(Expr, Expr)> = left.iter().cloned().zip(right.iter().cloned()).collect();
        let same_types = pairs.iter().all(|(a, b)| a.type_().oid == b.type_().oid);
        let comparison = self.row_comparison(operator, left, right, location)?;
        let hash = (operator == "=" && !all && same_types).then_some(pairs);
        Ok(SubqueryKind::Quantified { comparison, all, hash })
    }

    /// A sort key of an aggregate or window: always an expression, never a position or output name.
    pub(super) fn plain_sort_key(&mut self, item: &Node) -> Result<crate::plan::SortKey, SqlError> {
        let NodeEnum::SortBy(sort) = inner(item)? else {
            return Err(SqlError::internal("ORDER BY without a sort key"));
        };
        let expr = self.expr_of(sort.node.as_deref())?;
        let expr = self.sortable(expr, sort.location)?;
        self.sort_key(expr, sort)
    }

    /// Gives a literal or parameter without a type the type text.
    pub(super) fn sortable(&mut self, expr: Expr, location: i32) -> Result<Expr, SqlError> {
        match expr.type_().oid {
            oid::UNKNOWN => self.built(functions::cast(expr, Type::TEXT, CastContext::Implicit), location),
            _ => Ok(expr),
        }
    }
}

/// pg_partition_ancestors: there are no partitions, so it returns no rows.
fn no_ancestors() -> Bound {
    let type_ = types::array_of(oid::REGCLASS).map_or(Type::TEXT_ARRAY, Type::new);
    Bound::Set {
        function: expressions::function::SetFunction::Unnest,
        arguments: vec![Expr::Array { elements: Vec::new(), type_ }],
        columns: vec![("relid", Type::REGCLASS)],
    }
}

/// The last part of a call's name.
pub(crate) fn function_name(call: &FuncCall) -> &str {
    strings(&call.funcname).last().copied().unwrap_or_default()
}
