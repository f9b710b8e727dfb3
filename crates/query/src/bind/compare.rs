//! Comparisons that stand for several others: IN, BETWEEN and comparisons of rows.
//!
//! What must hold:
//!
//! 1. An operand that PostgreSQL copies into several comparisons is shared here, so it is computed
//!    once. A literal stays a constant, because each comparison gives its copy a type.
//! 2. Copies of a parameter get one type, or the statement is refused with 42P08.
//! 3. An operand that returns a set is not shared: the comparison refuses it with PostgreSQL's
//!    error.
//! 4. Rows compare from the first field on. Fields behind the pair that decides are not computed.

use pg_query::NodeEnum;
use pg_query::protobuf::{AExprKind, Node};

use super::location::optional_location;
use super::{Binder, inner, inner_of};
use crate::registers::Registers;
use expressions::expr::{Case, Expr, Sharing};
use expressions::functions;
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};
use values::work::tick_part;

impl Binder<'_> {
    pub(super) fn in_list(
        &mut self,
        left: Option<&Node>,
        right: Option<&Node>,
        negated: bool,
        location: i32,
    ) -> Result<Expr, SqlError> {
        let NodeEnum::List(list) = inner_of(right)? else {
            return Err(SqlError::internal("IN without a list"));
        };
        if let NodeEnum::RowExpr(row) = inner_of(left)? {
            let nodes = &row.args;
            let row = self.without_lifting(|binder| binder.expanded(nodes))?;
            let mut sharing = Sharing::default();
            // Later fields are not computed if the first one decides.
            let share = |(at, field): (usize, Expr)| match at {
                0 => self.copied_in(&mut sharing, field),
                _ => field,
            };
            let row: Vec<Expr> = row.into_iter().enumerate().map(share).collect();
            let mut alternatives = Vec::with_capacity(list.items.len());
            for item in &list.items {
                let NodeEnum::RowExpr(other) = inner(item)? else {
                    return Err(self.unsupported("IN between a row and something else", location));
                };
                let other = self.expanded(&other.args)?;
                let row = row.iter().map(Expr::copied).collect::<Result<Vec<_>, _>>()?;
                alternatives.push(self.row_comparison("=", row, other, location)?);
            }
            let any = if alternatives.len() == 1 { alternatives.remove(0) } else { Expr::Or(alternatives) };
            for (operand, node) in row.iter().zip(nodes) {
                self.check_copied(operand, Some(node), &any)?;
            }
            let any = sharing.around(any);
            return Ok(if negated { Expr::Not(Box::new(any)) } else { any });
        }
        let (node, left) = (left, self.copied_operand(left)?);
        let items = self.exprs(&list.items)?;
        let (count, mut parts) = (items.len(), Vec::with_capacity(items.len()));
        let columns = match items.iter().all(Expr::is_row_free) {
            true => Registers::default(),
            false => self.levels.last().map(|level| self.columns_of(level)).unwrap_or_default(),
        };
        for item in items {
            tick_part(count)?;
            let reads = !item.is_row_free() && self.reads_any(&item, &columns);
            parts.push((item, reads));
        }
        // Items that read no column are compared as an array, which a set could supply.
        let alone = parts.iter().filter(|(_, reads)| !reads).count() == 1;
        let compared = || parts.iter().filter(|(_, reads)| *reads || alone).map(|(item, _)| item);
        let operand = compared().next().map(|_| &left);
        let is_set = self.returns_set(compared().chain(operand));
        let mut sharing = Sharing::default();
        let operand = self.copied_in(&mut sharing, left);
        let list = self.built(functions::in_list(&operand, parts, negated), location)?;
        if is_set {
            return Err(self.refused_set("argument of IN", optional_location(node)));
        }
        self.check_copied(&operand, node, &list)?;
        Ok(sharing.around(list))
    }

    /// Shares an operand that PostgreSQL copies into several comparisons. An operand that returns a
    /// set is not shared, because the comparisons refuse it.
    fn copied_in(&self, sharing: &mut Sharing, operand: Expr) -> Expr {
        if self.returns_set([&operand]) { operand } else { sharing.copied_operand(operand) }
    }

    /// Binds an operand that is copied into several comparisons. A literal stays a constant,
    /// because each comparison gives its copy a type.
    fn copied_operand(&mut self, node: Option<&Node>) -> Result<Expr, SqlError> {
        match inner_of(node)? {
            NodeEnum::AConst(_) => self.without_lifting(|binder| binder.expr_of(node)),
            _ => self.expr_of(node),
        }
    }

    /// Raises 42P08 if comparisons gave copies of a parameter different types.
    fn check_copied(&self, operand: &Expr, node: Option<&Node>, within: &Expr) -> Result<(), SqlError> {
        let Expr::Param { index, type_: Type { oid: oid::UNKNOWN, .. } } = operand else { return Ok(()) };
        let params = within.params();
        let mut types = params.iter().filter(|(other, _)| other == index).map(|(_, type_)| type_);
        let Some(first) = types.next() else { return Ok(()) };
        let Some(other) = types.find(|other| other.oid != first.oid) else { return Ok(()) };
        let message = format!("inconsistent types deduced for parameter ${}", index + 1);
        let error = self.error(SqlState::AMBIGUOUS_PARAMETER, message, optional_location(node));
        Err(error.with_detail(format!("{} versus {}", Type::new(first.oid), Type::new(other.oid))))
    }

    pub(super) fn between(
        &mut self,
        kind: AExprKind,
        value: Option<&Node>,
        bounds: Option<&Node>,
        location: i32,
    ) -> Result<Expr, SqlError> {
        let NodeEnum::List(list) = inner_of(bounds)? else {
            return Err(SqlError::internal("BETWEEN without bounds"));
        };
        let [low, high] = list.items.as_slice() else {
            return Err(SqlError::internal("BETWEEN without two bounds"));
        };
        let is_row = |node: Option<&Node>| Ok::<_, SqlError>(matches!(inner_of(node)?, NodeEnum::RowExpr(_)));
        let node = value;
        // Rows are compared field by field, as an operator would. Any other value is compared
        // whole.
        let (row, low_row, high_row) = (is_row(node)?, is_row(Some(low))?, is_row(Some(high))?);
        let value = match row {
            true => self.without_lifting(|binder| binder.expr_of(node))?,
            false => self.copied_operand(node)?,
        };
        let symmetric = matches!(kind, AExprKind::AexprBetweenSym | AExprKind::AexprNotBetweenSym);
        let lifting = self.lift;
        self.lift = lifting && !symmetric;
        let bounds = self.expr(low).and_then(|low| Ok((low, self.expr(high)?)));
        self.lift = lifting;
        let (low, high) = bounds?;
        let mut sharing = Sharing::default();
        let mut share = |binder: &Self, operand: Expr| match operand {
            Expr::Row { .. } => operand,
            operand => binder.copied_in(&mut sharing, operand),
        };
        let value = share(self, value);
        let (low, high) = if symmetric { (share(self, low), share(self, high)) } else { (low, high) };
        // A parameter gets the type that the first comparison gives it.
        let operand = |binder: &mut Self| match &value {
            Expr::Param { .. } => binder.expr_of(node),
            Expr::Row { fields, .. } if fields.iter().any(|field| matches!(field, Expr::Param { .. })) => {
                binder.without_lifting(|binder| binder.expr_of(node))
            }
            value => value.copied(),
        };
        let negated = matches!(kind, AExprKind::AexprNotBetween | AExprKind::AexprNotBetweenSym);
        let set = if negated { "argument of OR" } else { "argument of AND" };
        let mut compared = |name: &str, (bound, bound_row): (Expr, bool)| -> Result<Expr, SqlError> {
            let compared = match (operand(self)?, bound) {
                (Expr::Row { fields: left, .. }, Expr::Row { fields: right, .. }) if row && bound_row => {
                    self.row_comparison(name, left, right, location)?
                }
                (value, bound) => self.built(functions::operator(name, Some(value), bound), location)?,
            };
            if self.returns_set([&compared]) {
                return Err(self.refused_set(set, optional_location(node)));
            }
            Ok(compared)
        };
        let mut within = |low: (Expr, bool), high: (Expr, bool)| -> Result<Expr, SqlError> {
            Ok(Expr::And(vec![compared(">=", low)?, compared("<=", high)?]))
        };
        let (low, high) = ((low, low_row), (high, high_row));
        let inside = if symmetric {
            let copies = ((low.0.copied()?, low.1), (high.0.copied()?, high.1));
            Expr::Or(vec![within(copies.0, copies.1)?, within(high, low)?])
        } else {
            within(low, high)?
        };
        let inside = sharing.around(inside);
        Ok(if negated { Expr::Not(Box::new(inside)) } else { inside })
    }

    /// Binds `(a, b) op (c, d)`.
    pub(crate) fn row_comparison(
        &mut self,
        name: &str,
        left: Vec<Expr>,
        right: Vec<Expr>,
        location: i32,
    ) -> Result<Expr, SqlError> {
        self.same_width(&left, &right, location)?;
        if left.is_empty() {
            let message = "cannot compare rows of zero length";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location));
        }
        let compare = |binder: &mut Self, name: &str, left: Expr, right: Expr| {
            let compared = binder.built(functions::operator(name, Some(left), right), location)?;
            match binder.returns_set([&compared]) {
                true => Err(binder.refused_set("row comparison operator", location)),
                false => Ok(compared),
            }
        };
        let mut pairs = left.into_iter().zip(right);
        match name {
            "=" | "<>" => {
                let parts = pairs.map(|(left, right)| compare(self, name, left, right));
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                match (name, parts.len()) {
                    ("<>", 2..) => Ok(Expr::Or(parts)),
                    _ => Ok(Expr::and(parts)),
                }
            }
            "<" | "<=" | ">" | ">=" => {
                let strict = &name[..1];
                let Some((left, right)) = pairs.next_back() else { return Ok(Expr::null(Type::BOOL)) };
                let mut result = compare(self, name, left, right)?;
                for (left, right) in pairs.rev() {
                    let mut sharing = Sharing::default();
                    let mut share = |field| match self.returns_set([&field]) {
                        true => field,
                        false => sharing.operand(field),
                    };
                    let (left, right) = (share(left), share(right));
                    let otherwise = compare(self, strict, left.copied()?, right.copied()?)?;
                    let equal = compare(self, "=", left, right)?;
                    // Fields after a pair that decides (NULL included) are not computed.
                    let branches = vec![(equal, result)];
                    let case = Case { branches, otherwise, type_: Type::BOOL };
                    result = sharing.around(Expr::Case(Box::new(case)));
                }
                Ok(result)
            }
            _ => Err(self.unsupported("this operator between rows", location)),
        }
    }

    fn same_width(&self, left: &[Expr], right: &[Expr], location: i32) -> Result<(), SqlError> {
        if left.len() == right.len() {
            return Ok(());
        }
        let message = "unequal number of entries in row expressions";
        Err(self.error(SqlState::SYNTAX_ERROR, message, location))
    }

    /// `IS [NOT] DISTINCT FROM` between written rows. It compares column by column, so that
    /// literals get types.
    pub(super) fn rows_distinct(
        &mut self,
        left: Vec<Expr>,
        right: Vec<Expr>,
        negated: bool,
        location: i32,
    ) -> Result<Expr, SqlError> {
        self.same_width(&left, &right, location)?;
        let mut parts = Vec::with_capacity(left.len());
        for (left, right) in left.into_iter().zip(right) {
            parts.push(self.built(functions::distinct(left, right, negated), location)?);
        }
        Ok(match (parts.len(), negated) {
            (0, _) => Expr::boolean(negated),
            (1, false) => parts.swap_remove(0),
            (_, false) => Expr::Or(parts),
            (_, true) => Expr::and(parts),
        })
    }
}
