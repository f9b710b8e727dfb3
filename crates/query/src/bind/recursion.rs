//! Where WITH RECURSIVE may name itself.
//!
//! What must hold: the query names itself once, in the recursive term. It does not do so in a
//! subquery of an expression. Nor does it in a side of an outer join or set operation from which a
//! later iteration could remove rows.

use pg_query::NodeEnum;
use pg_query::protobuf::{CommonTableExpr, JoinType, Node, SelectStmt, SetOperation};

use super::{Binder, inner, location};
use values::error::{SqlError, SqlState};

/// The place of a reference in the words of the error; None if it is allowed there.
type Place = Option<&'static str>;

const SUBQUERY: Place = Some("a subquery");

/// A search for references to one query.
struct Search<'n> {
    name: &'n str,
    /// The references: location and place of each.
    found: Vec<(i32, Place)>,
}

impl Binder<'_> {
    /// Whether a WITH query names itself. Refuses a reference at a forbidden place.
    pub(super) fn is_recursive(&self, select: &SelectStmt, name: &str, at: i32) -> Result<bool, SqlError> {
        let mut whole = Search { name, found: Vec::new() };
        whole.select(select, None)?;
        if whole.found.is_empty() {
            return Ok(false);
        }
        let (Some(left), Some(right)) = (&select.larg, &select.rarg) else {
            return Err(self.no_recursion(name, at));
        };
        if select.op != SetOperation::SetopUnion as i32 {
            return Err(self.no_recursion(name, at));
        }
        let mut search = Search { name, found: Vec::new() };
        for query in select.with_clause.iter().flat_map(|with| &with.ctes).filter_map(common_query) {
            search.select(query, SUBQUERY)?;
        }
        search.select(left, Some("its non-recursive term"))?;
        search.select(right, None)?;
        let mut allowed = 0;
        for (location, place) in search.found {
            allowed += i32::from(place.is_none());
            let wrong = match place {
                Some(place) => format!("within {place}"),
                None if allowed > 1 => "more than once".to_owned(),
                None => continue,
            };
            let message = format!("recursive reference to query \"{name}\" must not appear {wrong}");
            return Err(self.error(SqlState::INVALID_RECURSION, message, location));
        }
        let refused = [
            ("ORDER BY", select.sort_clause.first()),
            ("OFFSET", select.limit_offset.as_deref()),
            ("LIMIT", select.limit_count.as_deref()),
            ("FOR UPDATE/SHARE", select.locking_clause.first()),
        ];
        for (what, node) in refused {
            let Some(node) = node else { continue };
            let at = match &node.node {
                Some(NodeEnum::SortBy(sort)) => sort.node.as_deref().map_or(-1, location),
                _ => location(node),
            };
            let message = format!("{what} in a recursive query is not implemented");
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
        }
        Ok(true)
    }

    /// The queries of WITH RECURSIVE, each after those it names. Raises 0A000 if two name each
    /// other.
    pub(super) fn in_order<'n>(
        &self,
        queries: &[&'n CommonTableExpr],
    ) -> Result<Vec<&'n CommonTableExpr>, SqlError> {
        let mut left = queries.to_vec();
        let mut sorted = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let mut ready = None;
            for (at, query) in left.iter().enumerate() {
                let mut others = left.iter().filter(|other| other.ctename != query.ctename);
                let waits = others.try_fold(false, |waits, other| {
                    Ok::<bool, SqlError>(waits || names(query, &other.ctename)?)
                })?;
                if !waits {
                    ready = Some(at);
                    break;
                }
            }
            let Some(at) = ready else {
                let message = "mutual recursion between WITH items is not implemented";
                return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, left[0].location));
            };
            sorted.push(left.remove(at));
        }
        Ok(sorted)
    }

    fn no_recursion(&self, name: &str, at: i32) -> SqlError {
        let form = "non-recursive-term UNION [ALL] recursive-term";
        let message = format!("recursive query \"{name}\" does not have the form {form}");
        self.error(SqlState::INVALID_RECURSION, message, at)
    }
}

/// A WITH item.
fn common_table(node: &Node) -> Option<&CommonTableExpr> {
    match &node.node {
        Some(NodeEnum::CommonTableExpr(common)) => Some(common),
        _ => None,
    }
}

/// The query of a WITH item.
fn common_query(node: &Node) -> Option<&SelectStmt> {
    match common_table(node)?.ctequery.as_ref()?.node.as_ref()? {
        NodeEnum::SelectStmt(select) => Some(select),
        _ => None,
    }
}

/// Whether a WITH item's query names another item.
fn names(query: &CommonTableExpr, name: &str) -> Result<bool, SqlError> {
    let Some(NodeEnum::SelectStmt(select)) = query.ctequery.as_ref().and_then(|node| node.node.as_ref())
    else {
        return Ok(false);
    };
    let mut search = Search { name, found: Vec::new() };
    search.select(select, None)?;
    Ok(!search.found.is_empty())
}

impl Search<'_> {
    fn select(&mut self, select: &SelectStmt, place: Place) -> Result<(), SqlError> {
        let queries = select.with_clause.iter().flat_map(|with| &with.ctes);
        let queries: Vec<_> = queries.filter_map(common_table).collect();
        let recursive = select.with_clause.as_ref().is_some_and(|with| with.recursive);
        if recursive && queries.iter().any(|common| common.ctename == self.name) {
            return Ok(());
        }
        for common in queries {
            if let Some(NodeEnum::SelectStmt(query)) =
                common.ctequery.as_ref().and_then(|query| query.node.as_ref())
            {
                self.select(query, place)?;
            }
            // From here on the name means the inner query.
            if common.ctename == self.name {
                return Ok(());
            }
        }
        if let (Some(left), Some(right)) = (&select.larg, &select.rarg) {
            let all = select.all;
            let (on_left, on_right) = match SetOperation::try_from(select.op) {
                Ok(SetOperation::SetopIntersect) if all => {
                    (place.or(Some("INTERSECT")), place.or(Some("INTERSECT")))
                }
                Ok(SetOperation::SetopExcept) => {
                    (if all { place.or(Some("EXCEPT")) } else { place }, place.or(Some("EXCEPT")))
                }
                _ => (place, place),
            };
            self.select(left, on_left)?;
            return self.select(right, on_right);
        }
        for item in &select.from_clause {
            self.item(item, place)?;
        }
        let lists = [
            &select.distinct_clause,
            &select.target_list,
            &select.group_clause,
            &select.window_clause,
            &select.sort_clause,
            &select.values_lists,
        ];
        let single = [&select.where_clause, &select.having_clause, &select.limit_count, &select.limit_offset];
        lists.into_iter().flatten().try_for_each(|node| self.expression(node))?;
        single.into_iter().flatten().try_for_each(|node| self.expression(node))
    }

    fn item(&mut self, item: &Node, place: Place) -> Result<(), SqlError> {
        match inner(item)? {
            NodeEnum::RangeVar(range) if range.schemaname.is_empty() && range.relname == self.name => {
                self.found.push((range.location, place));
            }
            NodeEnum::RangeSubselect(subselect) => {
                if let Some(NodeEnum::SelectStmt(query)) =
                    subselect.subquery.as_ref().and_then(|query| query.node.as_ref())
                {
                    self.select(query, place)?;
                }
            }
            NodeEnum::JoinExpr(join) => {
                let outer = place.or(Some("an outer join"));
                let (left, right) = match JoinType::try_from(join.jointype) {
                    Ok(JoinType::JoinLeft) => (place, outer),
                    Ok(JoinType::JoinRight) => (outer, place),
                    Ok(JoinType::JoinFull) => (outer, outer),
                    _ => (place, place),
                };
                join.larg.as_deref().map_or(Ok(()), |side| self.item(side, left))?;
                join.rarg.as_deref().map_or(Ok(()), |side| self.item(side, right))?;
                join.quals.iter().try_for_each(|node| self.expression(node))?;
            }
            NodeEnum::RangeFunction(_) => self.expression(item)?,
            _ => {}
        }
        Ok(())
    }

    /// Searches the subqueries of an expression; only they can name a query there.
    fn expression(&mut self, node: &Node) -> Result<(), SqlError> {
        let mut left = vec![node];
        while let Some(node) = left.pop() {
            if let Some(NodeEnum::SubLink(link)) = &node.node
                && let Some(NodeEnum::SelectStmt(query)) =
                    link.subselect.as_ref().and_then(|query| query.node.as_ref())
            {
                self.select(query, SUBQUERY)?;
            }
            let from = left.len();
            node.node.iter().for_each(|node| parts(node, &mut left));
            // Reversed, so that the first part is popped first.
            left[from..].reverse();
        }
        Ok(())
    }
}

/// Adds the expressions directly below one, in the order of the text.
fn parts<'n>(node: &'n NodeEnum, into: &mut Vec<&'n Node>) {
    match node {
        NodeEnum::AExpr(expr) => into.extend(expr.lexpr.as_deref().into_iter().chain(expr.rexpr.as_deref())),
        NodeEnum::BoolExpr(expr) => into.extend(&expr.args),
        NodeEnum::CoalesceExpr(expr) => into.extend(&expr.args),
        NodeEnum::MinMaxExpr(expr) => into.extend(&expr.args),
        NodeEnum::RowExpr(row) => into.extend(&row.args),
        NodeEnum::AArrayExpr(array) => into.extend(&array.elements),
        NodeEnum::List(list) => into.extend(&list.items),
        NodeEnum::RangeFunction(range) => into.extend(&range.functions),
        NodeEnum::GroupingSet(set) => into.extend(&set.content),
        NodeEnum::BooleanTest(test) => into.extend(test.arg.as_deref()),
        NodeEnum::NullTest(test) => into.extend(test.arg.as_deref()),
        NodeEnum::ResTarget(target) => into.extend(target.val.as_deref()),
        NodeEnum::SortBy(sort) => into.extend(sort.node.as_deref()),
        NodeEnum::TypeCast(cast) => into.extend(cast.arg.as_deref()),
        NodeEnum::CollateClause(collate) => into.extend(collate.arg.as_deref()),
        NodeEnum::NamedArgExpr(named) => into.extend(named.arg.as_deref()),
        NodeEnum::AIndirection(indirection) => into.extend(indirection.arg.as_deref()),
        NodeEnum::SubLink(link) => into.extend(link.testexpr.as_deref()),
        NodeEnum::CaseExpr(case) => {
            into.extend(case.arg.as_deref());
            into.extend(&case.args);
            into.extend(case.defresult.as_deref());
        }
        NodeEnum::CaseWhen(when) => {
            into.extend(when.expr.as_deref().into_iter().chain(when.result.as_deref()))
        }
        NodeEnum::FuncCall(call) => {
            into.extend(call.args.iter().chain(&call.agg_order).chain(call.agg_filter.as_deref()));
            into.extend(
                call.over.iter().flat_map(|over| over.partition_clause.iter().chain(&over.order_clause)),
            );
        }
        NodeEnum::WindowDef(window) => {
            into.extend(window.partition_clause.iter().chain(&window.order_clause))
        }
        _ => {}
    }
}
