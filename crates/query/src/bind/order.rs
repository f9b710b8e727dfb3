//! Items of ORDER BY, DISTINCT and GROUP BY.
//!
//! An item is an output name, a position or an expression. An expression that is no output column
//! becomes a hidden target.

use pg_query::NodeEnum;
use pg_query::protobuf::{AConst, Node, SelectStmt, SortBy, SortByDir, SortByNulls, a_const};

use super::location::location;
use super::target::Target;
use super::{Binder, Clause, inner, inner_of};
use crate::parse::strings;
use crate::plan::SortKey;
use expressions::expr::Expr;
use values::error::{SqlError, SqlState};

/// ORDER BY as a list of (target, descending, nulls first).
pub(crate) type Ordering = Vec<(usize, bool, bool)>;

/// DISTINCT as positions of targets.
pub(crate) enum DistinctTargets {
    No,
    All,
    On(Vec<usize>),
}

impl Binder<'_> {
    /// Binds ORDER BY. Expressions that are no output column become hidden targets after the
    /// visible ones.
    pub(crate) fn order_clause(
        &mut self,
        items: &[Node],
        targets: &mut Vec<Target>,
        visible: usize,
    ) -> Result<Ordering, SqlError> {
        let mut ordering: Ordering = Vec::with_capacity(items.len());
        for item in items {
            let NodeEnum::SortBy(sort) = inner(item)? else {
                return Err(SqlError::internal("ORDER BY without a sort key"));
            };
            let node =
                sort.node.as_deref().ok_or_else(|| SqlError::internal("sort key without expression"))?;
            let target = self.target_of(node, targets, visible, Clause::Order)?;
            let (descending, nulls_first) = self.direction(sort)?;
            if !ordering.iter().any(|(other, _, _)| *other == target) {
                ordering.push((target, descending, nulls_first));
            }
        }
        Ok(ordering)
    }

    /// The target that an item of ORDER BY, GROUP BY or DISTINCT ON stands for.
    pub(crate) fn target_of(
        &mut self,
        node: &Node,
        targets: &mut Vec<Target>,
        visible: usize,
        clause: Clause,
    ) -> Result<usize, SqlError> {
        self.find_twins();
        let shown = if clause == Clause::Target { "DISTINCT ON" } else { clause.name() };
        match inner(node)? {
            NodeEnum::AConst(constant) => return self.target_position(constant, visible, shown),
            NodeEnum::ColumnRef(reference) => {
                if let [name] = *strings(&reference.fields).as_slice()
                    && !(clause == Clause::Group && self.is_input_column(name))
                {
                    let mut found: Option<usize> = None;
                    for (index, target) in
                        targets[..visible].iter().enumerate().filter(|(_, t)| t.name == name)
                    {
                        match found {
                            Some(other) if !self.twins().same(&targets[other].expr, &target.expr) => {
                                return Err(self.error(
                                    SqlState::AMBIGUOUS_COLUMN,
                                    format!("{shown} \"{name}\" is ambiguous"),
                                    reference.location,
                                ));
                            }
                            Some(_) => {}
                            None => found = Some(index),
                        }
                    }
                    if let Some(found) = found {
                        return Ok(found);
                    }
                }
            }
            _ => {}
        }
        let (links, uses) = (self.level().sublinks.len(), self.level().uses.len());
        let expr = self.in_clause(clause, |binder| binder.expr(node))?;
        let mut new = Target::new(String::new(), expr, location(node));
        new.uses = uses..self.level().uses.len();
        self.find_twins();
        let twins = self.twins();
        let print = new.fingerprint(twins);
        let alike =
            |target: &Target| target.fingerprint(twins) == print && twins.same(&target.expr, &new.expr);
        if let Some(found) = targets.iter().position(alike) {
            // Nothing reads this copy's subqueries.
            self.level().sublinks.truncate(links);
            return Ok(found);
        }
        targets.push(new);
        Ok(targets.len() - 1)
    }

    /// Whether a plain name is a column of FROM, which GROUP BY prefers to output names.
    fn is_input_column(&self, name: &str) -> bool {
        self.levels.last().is_some_and(|level| {
            level.entries.iter().any(|entry| entry.columns.iter().any(|c| !c.hidden && c.name == name))
        })
    }

    fn target_position(&self, constant: &AConst, visible: usize, clause: &str) -> Result<usize, SqlError> {
        let Some(a_const::Val::Ival(value)) = &constant.val else {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                format!("non-integer constant in {clause}"),
                constant.location,
            ));
        };
        usize::try_from(value.ival).ok().filter(|&p| (1..=visible).contains(&p)).map(|p| p - 1).ok_or_else(
            || {
                self.error(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("{clause} position {} is not in select list", value.ival),
                    constant.location,
                )
            },
        )
    }

    /// The direction of a sort: (descending, nulls first).
    fn direction(&self, sort: &SortBy) -> Result<(bool, bool), SqlError> {
        let descending = match SortByDir::try_from(sort.sortby_dir) {
            Ok(SortByDir::SortbyDesc) => true,
            Ok(SortByDir::SortbyUsing) => match *strings(&sort.use_op).as_slice() {
                [.., "<"] => false,
                [.., ">"] => true,
                _ => return Err(self.unsupported("ORDER BY USING this operator", sort.location)),
            },
            _ => false,
        };
        let nulls_first = match SortByNulls::try_from(sort.sortby_nulls) {
            Ok(SortByNulls::SortbyNullsFirst) => true,
            Ok(SortByNulls::SortbyNullsLast) => false,
            _ => descending,
        };
        Ok((descending, nulls_first))
    }

    /// A sort key over an expression.
    pub(crate) fn sort_key(&self, expr: Expr, sort: &SortBy) -> Result<SortKey, SqlError> {
        let (descending, nulls_first) = self.direction(sort)?;
        Ok(SortKey { expr, descending, nulls_first })
    }

    /// Sort keys over the targets' registers.
    pub(crate) fn sort_keys(
        &self,
        ordering: &Ordering,
        registers: &[u32],
        targets: &[Target],
    ) -> Vec<SortKey> {
        let key = |&(target, descending, nulls_first): &(usize, bool, bool)| SortKey {
            expr: Expr::column(registers[target], targets[target].expr.type_()),
            descending,
            nulls_first,
        };
        ordering.iter().map(key).collect()
    }

    /// DISTINCT and DISTINCT ON.
    pub(crate) fn distinct_clause(
        &mut self,
        select: &SelectStmt,
        targets: &mut Vec<Target>,
        visible: usize,
        ordering: &mut Ordering,
    ) -> Result<DistinctTargets, SqlError> {
        let items = &select.distinct_clause;
        if items.is_empty() {
            return Ok(DistinctTargets::No);
        }
        // The parser writes plain DISTINCT as a list with one empty node.
        if items.iter().all(|node| node.node.is_none()) {
            if let Some((hidden, _, _)) = ordering.iter().find(|(target, _, _)| *target >= visible) {
                return Err(self.error(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                    targets[*hidden].location,
                ));
            }
            if visible == 0 {
                let message = "SELECT DISTINCT must have at least one column";
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            return Ok(DistinctTargets::All);
        }
        let mut keys = Vec::with_capacity(items.len());
        let mut places = Vec::with_capacity(items.len());
        for item in items {
            let target = self.target_of(item, targets, visible, Clause::Target)?;
            if !keys.contains(&target) {
                keys.push(target);
                places.push(location(item));
            }
        }
        // After a sort key outside DISTINCT ON, no further key of DISTINCT ON may follow.
        if let Some(stray) = ordering.iter().position(|(target, _, _)| !keys.contains(target)) {
            let key_of = |target: usize| keys.iter().position(|key| *key == target);
            let unsorted = |key: &usize| !ordering.iter().any(|(target, _, _)| target == key);
            let late = ordering[stray..].iter().find_map(|(target, _, _)| key_of(*target));
            if let Some(late) = late.or_else(|| keys.iter().position(unsorted)) {
                return Err(self.error(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                    places[late],
                ));
            }
        }
        Ok(DistinctTargets::On(keys))
    }

    /// ORDER BY of a set operation, which accepts only output names and positions.
    pub(crate) fn set_order(
        &mut self,
        items: &[Node],
        output: &[crate::bound::OutputColumn],
    ) -> Result<Vec<SortKey>, SqlError> {
        let mut keys = Vec::with_capacity(items.len());
        for item in items {
            let NodeEnum::SortBy(sort) = inner(item)? else { continue };
            let index = match inner_of(sort.node.as_deref())? {
                NodeEnum::AConst(constant) => self.target_position(constant, output.len(), "ORDER BY")?,
                NodeEnum::ColumnRef(reference) => {
                    let names = strings(&reference.fields);
                    let found = match *names.as_slice() {
                        [name] => output.iter().position(|column| column.name == name),
                        _ => None,
                    };
                    found.ok_or_else(|| {
                        self.error(
                            SqlState::UNDEFINED_COLUMN,
                            format!("column \"{}\" does not exist", names.join(".")),
                            reference.location,
                        )
                    })?
                }
                _ => {
                    return Err(self
                        .error(
                            SqlState::FEATURE_NOT_SUPPORTED,
                            "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                            sort.node.as_deref().map_or(-1, location),
                        )
                        .with_detail("Only result column names can be used, not expressions or functions.")
                        .with_hint("Add the expression/function to every SELECT, or move the UNION into a FROM clause."));
                }
            };
            keys.push(self.sort_key(Expr::column(output[index].register, output[index].type_), sort)?);
        }
        Ok(keys)
    }
}
