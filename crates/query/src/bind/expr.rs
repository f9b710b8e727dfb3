//! Scalar expressions.
//!
//! What must hold: a bound expression has a type in all its parts, and nests no deeper than
//! `MAX_EXPRESSION_DEPTH`. Errors have PostgreSQL's position.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AExpr, AExprKind, BoolExpr, BoolExprType, BoolTestType, CaseExpr, MinMaxOp, Node, NullTestType,
    SqlValueFunction, SqlValueFunctionOp, SubLinkType, TypeCast,
};

use super::location::{location, locations, optional_location};
use super::{Binder, MAX_EXPRESSION_DEPTH, MAX_TARGETS, inner};
use crate::parse::strings;
use expressions::expr::{Case, Expr, Extreme, Sharing};
use expressions::functions::{self, Bound, CastContext};
use values::error::{SqlError, SqlState};
use values::types::{self, Type, oid};

/// Work of binding one expression, in ns: about a microsecond.
const BINDING: usize = 1000;

impl Binder<'_> {
    /// Binds an expression.
    pub(crate) fn expr(&mut self, node: &Node) -> Result<Expr, SqlError> {
        values::work::tick(BINDING)?;
        self.depth += 1;
        if self.depth > MAX_EXPRESSION_DEPTH {
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        let result = self.expr_node(node);
        self.depth -= 1;
        result
    }

    fn expr_node(&mut self, node: &Node) -> Result<Expr, SqlError> {
        match inner(node)? {
            NodeEnum::AConst(constant) => self.constant(constant),
            NodeEnum::ColumnRef(reference) => self.column_ref(reference),
            NodeEnum::ParamRef(reference) => self.parameter(reference),
            NodeEnum::AExpr(expr) => self.operation(expr),
            NodeEnum::BoolExpr(expr) => self.logic(expr),
            NodeEnum::TypeCast(cast) => self.type_cast(cast),
            NodeEnum::FuncCall(call) => self.call(call),
            NodeEnum::SubLink(link) => self.sublink(link),
            NodeEnum::CaseExpr(case) => {
                let sets = self.sets_met();
                let case = self.case(case)?;
                self.no_sets_since(sets, "set-returning functions are not allowed in CASE")?;
                Ok(case)
            }
            NodeEnum::CoalesceExpr(coalesce) => {
                let sets = self.sets_met();
                let arguments = self.exprs(&coalesce.args)?;
                self.no_sets_since(sets, "set-returning functions are not allowed in COALESCE")?;
                let (arguments, type_) = self.unified("COALESCE", arguments, &locations(&coalesce.args))?;
                Ok(Expr::Coalesce(arguments, type_))
            }
            NodeEnum::MinMaxExpr(extreme) => {
                let greatest = extreme.op == MinMaxOp::IsGreatest as i32;
                let name = if greatest { "GREATEST" } else { "LEAST" };
                let arguments = self.exprs(&extreme.args)?;
                let (arguments, type_) = self.unified(name, arguments, &locations(&extreme.args))?;
                Ok(Expr::Extreme(Box::new(Extreme { greatest, arguments, type_ })))
            }
            NodeEnum::NullTest(test) => {
                let input = self.expr_of(test.arg.as_deref())?;
                let negated = test.nulltesttype == NullTestType::IsNotNull as i32;
                Ok(Expr::NullTest { input: Box::new(input), negated })
            }
            NodeEnum::BooleanTest(test) => {
                let (name, expected, negated) = match BoolTestType::try_from(test.booltesttype) {
                    Ok(BoolTestType::IsTrue) => ("IS TRUE", Some(true), false),
                    Ok(BoolTestType::IsNotTrue) => ("IS NOT TRUE", Some(true), true),
                    Ok(BoolTestType::IsFalse) => ("IS FALSE", Some(false), false),
                    Ok(BoolTestType::IsNotFalse) => ("IS NOT FALSE", Some(false), true),
                    Ok(BoolTestType::IsNotUnknown) => ("IS NOT UNKNOWN", None, true),
                    _ => ("IS UNKNOWN", None, false),
                };
                let input = self.condition(test.arg.as_deref(), name)?;
                Ok(Expr::BoolTest { input: Box::new(input), expected, negated })
            }
            NodeEnum::RowExpr(row) => {
                let fields = self.expanded(&row.args)?;
                if fields.len() > MAX_TARGETS {
                    return Err(self.error(
                        SqlState::TOO_MANY_COLUMNS,
                        format!("ROW expressions can have at most {MAX_TARGETS} entries"),
                        row.location,
                    ));
                }
                Ok(Expr::Row { fields, names: None })
            }
            NodeEnum::AArrayExpr(array) => self.array(&array.elements, None, array.location),
            NodeEnum::AIndirection(indirection) => self.indirection(indirection),
            NodeEnum::CollateClause(collate) => {
                let expr = self.expr_of(collate.arg.as_deref())?;
                self.collatable(expr.type_(), collate.location)?;
                self.collation(&collate.collname, collate.location)?;
                Ok(expr)
            }
            NodeEnum::SqlvalueFunction(function) => self.value_function(function),
            NodeEnum::SetToDefault(default) => Err(self.error(
                SqlState::SYNTAX_ERROR,
                "DEFAULT is not allowed in this context",
                default.location,
            )),
            _ => Err(self.unsupported("this expression", location(node))),
        }
    }

    /// Binds an expression that must be present.
    pub(crate) fn expr_of(&mut self, node: Option<&Node>) -> Result<Expr, SqlError> {
        match node {
            Some(node) => self.expr(node),
            None => Err(SqlError::internal("missing expression")),
        }
    }

    /// Binds a list of expressions.
    pub(crate) fn exprs(&mut self, nodes: &[Node]) -> Result<Vec<Expr>, SqlError> {
        nodes.iter().map(|node| self.expr(node)).collect()
    }

    /// Binds the fields of ROW(...). `table.*` stands for the table's columns.
    pub(crate) fn expanded(&mut self, nodes: &[Node]) -> Result<Vec<Expr>, SqlError> {
        let mut exprs = Vec::with_capacity(nodes.len());
        for node in nodes {
            match self.star_of(node)? {
                Some(columns) => exprs.extend(columns.into_iter().map(|(_, expr)| expr)),
                None => exprs.push(self.expr(node)?),
            }
        }
        Ok(exprs)
    }

    /// Binds a boolean expression. `what` names its place in errors.
    pub(crate) fn condition(&mut self, node: Option<&Node>, what: &str) -> Result<Expr, SqlError> {
        let before = self.sets_met();
        let expr = self.expr_of(node)?;
        let expr = self.boolean(expr, what, optional_location(node))?;
        if self.sets_met() > before {
            return Err(self.refused_set(&format!("argument of {what}"), optional_location(node)));
        }
        Ok(expr)
    }

    fn boolean(&mut self, expr: Expr, what: &str, location: i32) -> Result<Expr, SqlError> {
        match expr.type_().oid {
            oid::BOOL => Ok(expr),
            oid::UNKNOWN => {
                let cast = functions::cast(expr, Type::BOOL, CastContext::Implicit);
                self.built(cast, location)
            }
            _ => Err(self.error(
                SqlState::DATATYPE_MISMATCH,
                format!("argument of {what} must be type boolean, not type {}", expr.type_()),
                location,
            )),
        }
    }

    /// Binds one expression and splits it into conditions that must all hold.
    pub(crate) fn conjuncts(&mut self, node: Option<&Node>, what: &str) -> Result<Vec<Expr>, SqlError> {
        if node.is_none() {
            return Ok(Vec::new());
        }
        let mut conditions = Vec::new();
        flatten(self.condition(node, what)?, &mut conditions)?;
        Ok(conditions)
    }

    /// Casts expressions to their common type.
    pub(crate) fn unified(
        &mut self,
        context: &str,
        exprs: Vec<Expr>,
        locations: &[i32],
    ) -> Result<(Vec<Expr>, Type), SqlError> {
        // The error names the first expression that does not fit those before it.
        let types: Vec<Type> = exprs.iter().map(Expr::type_).collect();
        let (exprs, type_) = functions::unify(context, exprs).map_err(|error| {
            let fits = |count: &usize| functions::common_type(context, &types[..*count]).is_ok();
            let odd = (1..=types.len()).find(|count| !fits(count)).map_or(0, |count| count - 1);
            let location = self.text_in(&error).or(locations.get(odd).copied()).unwrap_or(-1);
            error.at(self.position(location))
        })?;
        for expr in &exprs {
            self.note_parameters(expr);
        }
        Ok((exprs, type_))
    }

    fn operation(&mut self, expr: &AExpr) -> Result<Expr, SqlError> {
        let name = strings(&expr.name).last().copied().unwrap_or_default();
        let kind = AExprKind::try_from(expr.kind).unwrap_or(AExprKind::Undefined);
        let (left, right) = (expr.lexpr.as_deref(), expr.rexpr.as_deref());
        match kind {
            AExprKind::AexprOp | AExprKind::AexprLike | AExprKind::AexprIlike | AExprKind::AexprSimilar => {
                if let (Some(NodeEnum::RowExpr(a)), Some(NodeEnum::RowExpr(b))) =
                    (left.and_then(|n| n.node.as_ref()), right.and_then(|n| n.node.as_ref()))
                {
                    let (a, b) = (self.expanded(&a.args)?, self.expanded(&b.args)?);
                    return self.row_comparison(name, a, b, expr.location);
                }
                if let (Some(NodeEnum::RowExpr(row)), Some(NodeEnum::SubLink(link))) =
                    (left.and_then(|n| n.node.as_ref()), right.and_then(|n| n.node.as_ref()))
                    && link.sub_link_type == SubLinkType::ExprSublink as i32
                {
                    let row = self.expanded(&row.args)?;
                    let right = self.row_sublink(link, row.len(), expr.location)?;
                    return self.row_comparison(name, row, right, expr.location);
                }
                let left = left.map(|node| self.expr(node)).transpose()?;
                let right = self.expr_of(right)?;
                self.built(functions::operator(name, left, right), expr.location)
            }
            AExprKind::AexprOpAny | AExprKind::AexprOpAll => {
                let all = kind == AExprKind::AexprOpAll;
                let (left, right) = (self.expr_of(left)?, self.expr_of(right)?);
                self.built(functions::operator_any(name, left, right, all), expr.location)
            }
            AExprKind::AexprDistinct | AExprKind::AexprNotDistinct => {
                if let (Some(NodeEnum::RowExpr(a)), Some(NodeEnum::RowExpr(b))) =
                    (left.and_then(|n| n.node.as_ref()), right.and_then(|n| n.node.as_ref()))
                {
                    let (a, b) = (self.expanded(&a.args)?, self.expanded(&b.args)?);
                    return self.rows_distinct(a, b, kind == AExprKind::AexprNotDistinct, expr.location);
                }
                let (left, right) = (self.expr_of(left)?, self.expr_of(right)?);
                let negated = kind == AExprKind::AexprNotDistinct;
                self.built(functions::distinct(left, right, negated), expr.location)
            }
            AExprKind::AexprNullif => {
                let (left, right) = (self.expr_of(left)?, self.expr_of(right)?);
                self.built(functions::null_if(left, right), expr.location)
            }
            AExprKind::AexprIn => self.in_list(left, right, name == "<>", expr.location),
            AExprKind::AexprBetween
            | AExprKind::AexprNotBetween
            | AExprKind::AexprBetweenSym
            | AExprKind::AexprNotBetweenSym => self.between(kind, left, right, expr.location),
            AExprKind::Undefined => Err(SqlError::internal("operator of no kind")),
        }
    }

    fn logic(&mut self, expr: &BoolExpr) -> Result<Expr, SqlError> {
        match BoolExprType::try_from(expr.boolop) {
            Ok(BoolExprType::NotExpr) => Ok(Expr::Not(Box::new(self.condition(expr.args.first(), "NOT")?))),
            Ok(BoolExprType::OrExpr) => {
                let args = expr.args.iter().map(|arg| self.condition(Some(arg), "OR"));
                Ok(Expr::Or(args.collect::<Result<_, _>>()?))
            }
            _ => {
                let args = expr.args.iter().map(|arg| self.condition(Some(arg), "AND"));
                Ok(Expr::And(args.collect::<Result<_, _>>()?))
            }
        }
    }

    fn type_cast(&mut self, cast: &TypeCast) -> Result<Expr, SqlError> {
        let name = cast.type_name.as_ref().ok_or_else(|| SqlError::internal("cast without type"))?;
        let type_ = self.type_name(name)?;
        if let Some(NodeEnum::AArrayExpr(array)) = cast.arg.as_ref().and_then(|arg| arg.node.as_ref())
            && types::element_of(type_.oid).is_some()
        {
            if matches!(type_.oid, oid::INT2VECTOR | oid::OIDVECTOR) {
                let message = format!("array is not a valid {type_}");
                return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
            }
            let expr = self.array(&array.elements, Some(type_), array.location)?;
            return self.built(functions::cast(expr, type_, CastContext::Explicit), cast.location);
        }
        let start = optional_location(cast.arg.as_deref());
        // A constant after its type's name.
        if name.location >= 0 && name.location < start {
            self.refuse_parameter(cast.arg.as_deref())?;
        }
        // Binding reads an interval literal with fields at once, so that its error has a position.
        let expr = match functions::interval_fields(type_) {
            true => self.without_lifting(|binder| binder.expr_of(cast.arg.as_deref()))?,
            false => self.expr_of(cast.arg.as_deref())?,
        };
        let failed_at =
            if expr.type_().oid == oid::UNKNOWN || cast.location < 0 { start } else { cast.location };
        self.built(functions::cast(expr, type_, CastContext::Explicit), failed_at)
    }

    fn case(&mut self, case: &CaseExpr) -> Result<Expr, SqlError> {
        let subject = case.arg.as_deref().map(|arg| self.expr(arg)).transpose()?;
        let subject = match subject {
            Some(expr) if expr.type_().oid == oid::UNKNOWN => {
                Some(self.built(functions::cast(expr, Type::TEXT, CastContext::Implicit), case.location)?)
            }
            other => other,
        };
        let mut sharing = Sharing::default();
        let subject = subject.map(|subject| sharing.operand(subject));
        let mut conditions = Vec::with_capacity(case.args.len());
        let mut results = Vec::with_capacity(case.args.len() + 1);
        let mut places = vec![optional_location(case.defresult.as_deref())];
        results.push(match case.defresult.as_deref() {
            Some(otherwise) => self.expr(otherwise)?,
            None => Expr::null(Type::UNKNOWN),
        });
        for arm in &case.args {
            let NodeEnum::CaseWhen(when) = inner(arm)? else {
                return Err(SqlError::internal("CASE without WHEN"));
            };
            conditions.push(match &subject {
                Some(subject) => {
                    let value = self.expr_of(when.expr.as_deref())?;
                    let equal = functions::operator("=", Some(subject.copied()?), value);
                    self.built(equal, when.location)?
                }
                None => self.condition(when.expr.as_deref(), "CASE/WHEN")?,
            });
            results.push(self.expr_of(when.result.as_deref())?);
            places.push(optional_location(when.result.as_deref()));
        }
        let (mut results, type_) = self.unified("CASE", results, &places)?;
        let otherwise = results.remove(0);
        let branches = conditions.into_iter().zip(results).collect();
        Ok(sharing.around(Expr::Case(Box::new(Case { branches, otherwise, type_ }))))
    }

    /// ARRAY[...]; an enclosing cast gives it the array type `wanted`.
    fn array(&mut self, nodes: &[Node], wanted: Option<Type>, location: i32) -> Result<Expr, SqlError> {
        let mut elements = Vec::with_capacity(nodes.len());
        for node in nodes {
            elements.push(match inner(node)? {
                NodeEnum::AArrayExpr(nested) => self.array(&nested.elements, wanted, nested.location)?,
                _ => self.expr(node)?,
            });
        }
        if let Some(array) = wanted
            && let Some(element) = types::element_of(array.oid)
        {
            let element = Type::with_modifier(element, array.modifier);
            for (expr, node) in elements.iter_mut().zip(nodes) {
                if !types::is_array(expr.type_().oid) {
                    let taken = std::mem::replace(expr, Expr::null(element));
                    *expr = self.built(
                        functions::cast(taken, element, CastContext::Explicit),
                        self::location(node),
                    )?;
                }
            }
            return Ok(Expr::Array { elements, type_: array });
        }
        if elements.is_empty() {
            return Err(self
                .error(SqlState::INDETERMINATE_DATATYPE, "cannot determine type of empty array", location)
                .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
        }
        let (elements, element) = self.unified("ARRAY", elements, &locations(nodes))?;
        // int2vector and oidvector have array types of their own; other arrays become sub-arrays.
        let array = match types::array_of(element.oid) {
            Some(array) => Type::new(array),
            None if types::is_array(element.oid) => element,
            None => return Err(self.no_array_type(element, location)),
        };
        Ok(Expr::Array { elements, type_: array })
    }

    /// The error for a type without an array type here. PostgreSQL has arrays of rows.
    pub(super) fn no_array_type(&self, element: Type, location: i32) -> SqlError {
        if element.oid == oid::RECORD {
            return self.unsupported("an array of rows", location);
        }
        let message = format!("could not find array type for data type {element}");
        self.error(SqlState::UNDEFINED_OBJECT, message, location)
    }

    /// CURRENT_DATE and similar functions.
    fn value_function(&mut self, function: &SqlValueFunction) -> Result<Expr, SqlError> {
        use SqlValueFunctionOp as Op;
        let (name, to) = match Op::try_from(function.op).unwrap_or(Op::SqlvalueFunctionOpUndefined) {
            Op::SvfopCurrentDate => ("now", Some(Type::DATE)),
            Op::SvfopCurrentTimestamp => ("now", None),
            Op::SvfopCurrentTimestampN => {
                ("now", Some(Type::with_modifier(oid::TIMESTAMPTZ, function.typmod)))
            }
            Op::SvfopLocaltime => ("now", Some(Type::TIME)),
            Op::SvfopLocaltimeN => ("now", Some(Type::with_modifier(oid::TIME, function.typmod))),
            Op::SvfopLocaltimestamp => ("now", Some(Type::TIMESTAMP)),
            Op::SvfopLocaltimestampN => ("now", Some(Type::with_modifier(oid::TIMESTAMP, function.typmod))),
            Op::SvfopCurrentRole | Op::SvfopCurrentUser | Op::SvfopUser => ("current_user", None),
            Op::SvfopSessionUser => ("session_user", None),
            Op::SvfopCurrentCatalog => ("current_database", None),
            Op::SvfopCurrentSchema => ("current_schema", None),
            Op::SvfopCurrentTime | Op::SvfopCurrentTimeN | Op::SqlvalueFunctionOpUndefined => {
                return Err(self.unsupported("time with time zone", function.location));
            }
        };
        let bound = functions::function(name, Vec::new(), false)
            .map_err(|error| error.at(self.position(function.location)))?;
        let Bound::Scalar(call) = bound else {
            return Err(SqlError::internal("a value function is a plain function"));
        };
        match to {
            Some(type_) => self.built(functions::cast(call, type_, CastContext::Explicit), function.location),
            None => Ok(call),
        }
    }
}

/// Splits an AND into its parts.
pub(crate) fn flatten(condition: Expr, into: &mut Vec<Expr>) -> Result<(), SqlError> {
    match condition {
        Expr::And(parts) => parts.into_iter().try_for_each(|part| flatten(part, into))?,
        // Each part may allow an index scan by itself.
        Expr::Shared(shared) => match &shared.body {
            Expr::And(parts) => parts.iter().try_for_each(|part| flatten(shared.closed(part)?, into))?,
            _ => into.push(Expr::Shared(shared)),
        },
        other => into.push(other),
    }
    Ok(())
}
