//! Converts plans to the nodes that EXPLAIN shows.

use runtime::hash::HashMap;

use super::names;
use super::node::{Node, NodeFigures, Role};
use super::{Actual, Result, SHOWING};
use crate::plan::{
    CommonTable, EquiMethod, HashBeyond, JoinKind, Operator, Plan, Reg, RunCondition, SetKind, SetSide,
    SetStage, SortKey,
};
use crate::planner::OFF;
use catalog::Catalog;
use expressions::expr::{Expr, Show};
use values::error::SqlError;
use values::identifier::quoted;
use values::work;

/// Converts plans to nodes.
pub(super) struct Explainer<'a> {
    pub(super) show: Show<'a>,
    /// The role of each subquery, by the register of its result.
    pub(super) links: &'a HashMap<Reg, Role>,
    /// The names of WITH queries.
    pub(super) tables: &'a HashMap<u32, String>,
    pub(super) catalog: &'a Catalog,
    /// Whether the statement returns rows.
    pub(super) returns: bool,
    /// The width of each node's rows.
    pub(super) widths: HashMap<u32, u64>,
    /// The figures of each node, with ANALYZE.
    pub(super) actual: Option<&'a [Actual]>,
}

impl Explainer<'_> {
    /// The node that stands for a plan, with those below it.
    pub(super) fn node(&self, plan: &Plan) -> Result<Node> {
        let mut shown = self.bare(plan)?;
        shown.figures = Some(self.figures(plan));
        work::tick(SHOWING)?;
        Ok(shown)
    }

    fn bare(&self, plan: &Plan) -> Result<Node> {
        Ok(match &plan.operator {
            Operator::OneRow | Operator::Joined { .. } => Node::new("Result"),
            Operator::Nothing => Node::new("Result").text("One-Time Filter", Some("false".to_owned())),
            Operator::Values { .. } => {
                Node::titled("Values Scan", "Values Scan on \"*VALUES*\"").fact("Alias", "*VALUES*")
            }
            Operator::Scan(scan) => self.scan(scan, self.per_loop(plan, self.actual_of(plan).removed)),
            Operator::Virtual { relation, filter, .. } => self.system(plan, *relation, filter.as_ref()),
            Operator::Function { calls, .. } => {
                let names: Vec<String> = calls.iter().map(names::function).collect();
                let names = names.join(", ");
                Node::titled("Function Scan", format!("Function Scan on {names}"))
                    .fact("Function Name", names)
            }
            // PostgreSQL shows no node for a projection.
            Operator::Project { input, .. } => self.node(input)?,
            Operator::Filter { input, condition } => self.filter(plan, input, condition)?,
            Operator::NestedLoop { beyond, .. } => {
                let hashed = beyond.as_deref().and_then(|beyond| self.went_on(beyond));
                self.nested_loop(plan)?.text("Hash Join Beyond", hashed)
            }
            Operator::EquiJoin { kind, left, right, keys, condition, test, method, .. } => {
                let (node, name, label) = match method {
                    EquiMethod::Hash { .. } => ("Hash Join", "Hash", "Hash Cond"),
                    EquiMethod::Merge(_) => ("Merge Join", "Merge", "Merge Cond"),
                };
                let shown = join(node, name, *kind)
                    .text(label, self.equalities(keys))
                    .text("Join Filter", self.shown(condition.as_ref()));
                match method {
                    EquiMethod::Hash { .. } => self.hash_join(shown, (left, right), test.as_deref())?,
                    EquiMethod::Merge(_) => {
                        shown.child(Role::Outer, self.node(left)?).child(Role::Inner, self.node(right)?)
                    }
                }
            }
            Operator::Subquery { .. } => {
                let (below, links) = subqueries(plan);
                self.with_links(self.node(below)?, &links)?
            }
            Operator::Aggregate { input, groups, sorted, .. } => {
                let keys = groups.iter().map(|(expr, _)| self.show.text(expr)).collect();
                self.over(aggregate(groups.is_empty(), *sorted), input)?.list("Group Key", keys)
            }
            Operator::Window { input, run, .. } => {
                self.over(Node::new("WindowAgg").text("Run Condition", self.run(run.as_deref())), input)?
            }
            Operator::Sort { input, keys, presorted, .. } => {
                let kind = if *presorted > 0 { "Incremental Sort" } else { "Sort" };
                self.over(Node::new(kind), input)?
                    .list("Sort Key", self.sort_keys(keys))
                    .list("Presorted Key", self.sort_keys(&keys[..*presorted]))
            }
            Operator::Limit { input, .. } => self.over(Node::new("Limit"), input)?,
            Operator::Distinct { input, .. } => self.over(Node::new("Unique"), input)?,
            Operator::SetOperation { first, stages, .. } => self.set_operation(first, stages)?,
            Operator::With { tables, body } => self.with(tables, body)?,
            Operator::CommonScan { id, working, .. } => {
                let kind = if *working { "WorkTable Scan" } else { "CTE Scan" };
                let name = self.table(*id);
                Node::titled(kind, format!("{kind} on {}", quoted(name))).fact("CTE Name", name)
            }
            Operator::LockRows { input, .. } => self.over(Node::new("LockRows"), input)?,
            Operator::Insert(insert) => self.changed("Insert", &insert.table.name, &insert.input)?,
            Operator::Update(update) => self.changed("Update", &update.target.table.name, &update.input)?,
            Operator::Delete(delete) => self.changed("Delete", &delete.target.table.name, &delete.input)?,
        })
    }

    /// A node over the node of its only input.
    fn over(&self, node: Node, input: &Plan) -> Result<Node> {
        Ok(node.child(Role::Outer, self.node(input)?))
    }

    fn shown(&self, expr: Option<&Expr>) -> Option<String> {
        expr.map(|expr| self.show.text(expr))
    }

    fn table(&self, id: u32) -> &str {
        self.tables.get(&id).map_or("", String::as_str)
    }

    /// The figures of a node; zeros without ANALYZE.
    fn actual_of(&self, plan: &Plan) -> Actual {
        self.actual.and_then(|actual| actual.get(plan.node as usize)).copied().unwrap_or_default()
    }

    /// Rows of a node's figures in one loop; None without ANALYZE.
    fn per_loop(&self, plan: &Plan, rows: u64) -> Option<f64> {
        self.actual.map(|_| rows as f64 / self.actual_of(plan).loops.max(1) as f64)
    }

    fn figures(&self, plan: &Plan) -> NodeFigures {
        let mut estimate = plan.estimate;
        let disabled = own_work(plan) >= OFF;
        estimate.start %= OFF;
        estimate.cost = (estimate.cost % OFF).max(estimate.start);
        let width = self.widths.get(&plan.node).copied().unwrap_or(0);
        let mut actual = self.actual.map(|_| self.actual_of(plan));
        let changes =
            matches!(plan.operator, Operator::Insert(_) | Operator::Update(_) | Operator::Delete(_));
        if let Some(actual) = actual.as_mut().filter(|_| changes && !self.returns) {
            // It gives its rows to nobody.
            actual.rows = 0;
        }
        NodeFigures { estimate, disabled, width, actual }
    }

    fn system(&self, plan: &Plan, relation: u32, filter: Option<&Expr>) -> Node {
        let name = self.catalog.table(relation).map_or("", |table| table.name.as_str());
        let shown = Node::titled("Seq Scan", format!("Seq Scan on {}", quoted(name)))
            .fact("Relation Name", name)
            .fact("Alias", name);
        match filter {
            Some(filter) => {
                shown.filtered(self.show.text(filter), self.per_loop(plan, self.actual_of(plan).removed))
            }
            None => shown,
        }
    }

    /// A condition on the rows of a plan.
    fn filter(&self, plan: &Plan, input: &Plan, condition: &Expr) -> Result<Node> {
        if let Some(once) = Once::of(plan) {
            return self.once(&once, Node::new("Result"));
        }
        let shown =
            if tests_rows(input) { self.node(input)? } else { self.over(Node::new("Filter"), input)? };
        let removed = self.actual_of(input).rows.saturating_sub(self.actual_of(plan).rows);
        Ok(shown.filtered(self.show.text(condition), self.per_loop(plan, removed)))
    }

    /// The node of a nested loop. An inner one that runs its right side once, after conditions and
    /// subqueries that read no row, is no loop. It has no condition of its own.
    fn nested_loop(&self, plan: &Plan) -> Result<Node> {
        let Operator::NestedLoop { kind, left, right, condition, memo, .. } = &plan.operator else {
            return Err(SqlError::internal("a nested loop of another node"));
        };
        match Once::of(left).filter(|_| *kind == JoinKind::Inner) {
            Some(once) if once.conditions.is_empty() => self.once(&once, self.node(right)?),
            Some(once) => self.once(&once, self.over(Node::new("Result"), right)?),
            None => {
                let right = match memo {
                    Some(keys) => self.memoize(plan, right, keys)?,
                    None => self.node(right)?,
                };
                Ok(join("Nested Loop", "Nested Loop", *kind)
                    .text("Join Filter", self.shown(condition.as_ref()))
                    .child(Role::Outer, self.node(left)?)
                    .child(Role::Inner, right))
            }
        }
    }

    /// The node of the kept rows of a loop's right side.
    fn memoize(&self, plan: &Plan, right: &Plan, keys: &[Reg]) -> Result<Node> {
        let kept = self.actual_of(plan).memory;
        let names: Vec<String> = keys.iter().map(|key| self.show.name(*key)).collect();
        let mut shown = Node::new("Memoize")
            .text("Cache Key", Some(names.join(", ")))
            .text("Cache Mode", Some("binary".to_owned()));
        if kept.misses > 0 {
            shown = shown.kept(kept);
        }
        let mut figures = self.figures(right);
        if let Some(actual) = &mut figures.actual {
            (actual.loops, actual.rows) = (kept.hits + kept.misses, kept.rows);
        }
        let shown = self.over(shown, right)?;
        Ok(Node { figures: Some(figures), ..shown })
    }

    /// The left rows after which a loop went on as a hash join, if it did.
    fn went_on(&self, beyond: &HashBeyond) -> Option<String> {
        let Operator::EquiJoin { right, .. } = &beyond.join.operator else { return None };
        (self.actual_of(right).loops > 0).then(|| format!("{} rows", beyond.rows))
    }

    /// A node below conditions and subqueries that read no row.
    fn once(&self, once: &Once<'_>, node: Node) -> Result<Node> {
        let conditions = once.conditions.iter().map(|condition| self.show.text(condition)).collect();
        self.with_links(node.text("One-Time Filter", all_of(conditions)), &once.links)
    }

    /// A node with subqueries of its expressions.
    fn with_links(&self, mut node: Node, links: &[(Reg, &Plan)]) -> Result<Node> {
        for (register, subquery) in links {
            let role = self.links.get(register).cloned().unwrap_or(Role::SubPlan("SubPlan".to_owned()));
            node = node.child(role, self.node(subquery)?);
        }
        Ok(node)
    }

    fn run(&self, run: Option<&RunCondition>) -> Option<String> {
        let conditions = run.iter().flat_map(|run| &run.conditions);
        all_of(conditions.map(|condition| self.show.text(condition)).collect())
    }

    fn sort_keys(&self, keys: &[SortKey]) -> Vec<String> {
        let one = |key: &SortKey| {
            let direction = if key.descending { " DESC" } else { "" };
            let nulls = match (key.descending, key.nulls_first) {
                (false, true) => " NULLS FIRST",
                (true, false) => " NULLS LAST",
                _ => "",
            };
            format!("{}{direction}{nulls}", self.show.text(&key.expr))
        };
        keys.iter().map(one).collect()
    }

    /// A chain of set operations: each step reads the one before.
    fn set_operation(&self, first: &SetSide, stages: &[SetStage]) -> Result<Node> {
        stages.iter().try_fold(self.node(&first.0)?, |left, stage| {
            let mut node = match stage.kind {
                SetKind::Union => Node::new("Append"),
                SetKind::Intersect => set("SetOp Intersect", "Intersect"),
                SetKind::Except => set("SetOp Except", "Except"),
            };
            let role = |outer| if stage.kind == SetKind::Union { Role::Member } else { outer };
            node = node.child(role(Role::Outer), left);
            for (side, _) in &stage.sides {
                node = node.child(role(Role::Inner), self.node(side)?);
            }
            Ok::<_, SqlError>(node)
        })
    }

    /// The node of a command that changes rows of a table.
    fn changed(&self, command: &str, table: &str, input: &Plan) -> Result<Node> {
        let node = Node::titled("ModifyTable", format!("{command} on {}", quoted(table)));
        let node = node.fact("Operation", command).fact("Relation Name", table).fact("Alias", table);
        self.over(node, input)
    }

    /// A hash join's node with its inputs. `test`: the plan that decides on pairs of rows.
    fn hash_join(&self, node: Node, (left, right): (&Plan, &Plan), test: Option<&Plan>) -> Result<Node> {
        let hash = self.over(Node::new("Hash"), right)?;
        let hash = Node { figures: Some(self.figures(right).after_all()), ..hash };
        let shown = node.child(Role::Outer, self.node(left)?).child(Role::Inner, hash);
        match test {
            Some(test) => Ok(shown.child(Role::SubPlan("SubPlan".to_owned()), self.node(test)?)),
            None => Ok(shown),
        }
    }

    /// The node of a query with the WITH queries that it reads.
    fn with(&self, tables: &[CommonTable], body: &Plan) -> Result<Node> {
        let mut shown = self.node(body)?;
        for table in tables {
            let mut query = self.node(&table.plan)?;
            if let Some(term) = &table.recursive {
                query = Node::new("Recursive Union")
                    .child(Role::Outer, query)
                    .child(Role::Inner, self.node(&term.plan)?);
            }
            let label = format!("CTE {}", quoted(self.table(table.id)));
            shown = shown.child(Role::InitPlan(label), query);
        }
        Ok(shown)
    }

    /// The condition of a hash join: its keys are equal.
    fn equalities(&self, keys: &[(Expr, Expr)]) -> Option<String> {
        let equal = |(a, b): &(Expr, Expr)| format!("({} = {})", self.show.text(a), self.show.text(b));
        all_of(keys.iter().map(equal).collect())
    }
}

impl NodeFigures {
    /// The figures of a node that gives rows after it has read all of them.
    fn after_all(mut self) -> NodeFigures {
        self.estimate.start = self.estimate.cost;
        self.disabled = false;
        if let Some(actual) = &mut self.actual {
            actual.start = actual.total;
        }
        self
    }
}

/// Conditions and subqueries that read no row, above one row without columns.
struct Once<'p> {
    conditions: Vec<&'p Expr>,
    links: Vec<(Reg, &'p Plan)>,
}

impl<'p> Once<'p> {
    fn of(plan: &'p Plan) -> Option<Once<'p>> {
        let (mut below, mut once) = (plan, Once { conditions: Vec::new(), links: Vec::new() });
        loop {
            below = match &below.operator {
                Operator::Filter { input, condition } => {
                    once.conditions.push(condition);
                    input
                }
                Operator::Subquery { input, subquery, output, .. } => {
                    once.links.push((*output, subquery));
                    input
                }
                Operator::OneRow => break,
                _ => return None,
            };
        }
        once.conditions.reverse();
        once.links.reverse();
        Some(once)
    }
}

/// The plan below a plan's subqueries, and these, the lowest first. An expression with thousands of
/// subqueries has one node above the other for each, so this is a loop and no recursion.
fn subqueries(plan: &Plan) -> (&Plan, Vec<(Reg, &Plan)>) {
    let (mut below, mut links) = (plan, Vec::new());
    while let Operator::Subquery { input, subquery, output, .. } = &below.operator {
        links.push((*output, &**subquery));
        below = input;
    }
    links.reverse();
    (below, links)
}

/// The estimated work of a node without that of its inputs.
fn own_work(plan: &Plan) -> f64 {
    let below = match &plan.operator {
        Operator::NestedLoop { left, right, memo: None, .. } => {
            left.estimate.cost + left.estimate.rows * right.estimate.cost
        }
        Operator::Subquery { input, .. } => input.estimate.cost.max(plan.estimate.cost),
        _ => {
            let mut sum = 0.0;
            crate::plan::walk::children(plan, &mut |child| sum += child.estimate.cost);
            sum
        }
    };
    plan.estimate.cost - below
}

/// Whether EXPLAIN shows a condition on a plan's rows at the plan's own node, as PostgreSQL does.
/// That would be wrong for a node that takes fewer rows, or computes different rows from fewer.
fn tests_rows(plan: &Plan) -> bool {
    match &plan.operator {
        Operator::Project { input, .. } | Operator::Subquery { input, .. } => tests_rows(input),
        Operator::Scan(_)
        | Operator::Virtual { .. }
        | Operator::Values { .. }
        | Operator::Function { .. }
        | Operator::CommonScan { .. }
        | Operator::NestedLoop { .. }
        | Operator::EquiJoin { .. }
        | Operator::Aggregate { .. } => true,
        _ => false,
    }
}

/// Joins conditions with AND.
pub(super) fn all_of(mut conditions: Vec<String>) -> Option<String> {
    match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(format!("({})", conditions.join(" AND "))),
    }
}

fn join(node: &'static str, method: &str, kind: JoinKind) -> Node {
    let name = match kind {
        JoinKind::Inner => return Node::new(node).fact("Join Type", "Inner"),
        JoinKind::Left => "Left",
        JoinKind::Right => "Right",
        JoinKind::Full => "Full",
        JoinKind::Semi => "Semi",
        JoinKind::Anti => "Anti",
    };
    Node::titled(node, format!("{method} {name} Join")).fact("Join Type", name)
}

fn aggregate(is_whole: bool, sorted: bool) -> Node {
    let (title, strategy) = match (is_whole, sorted) {
        (true, _) => ("Aggregate", "Plain"),
        (false, true) => ("GroupAggregate", "Sorted"),
        (false, false) => ("HashAggregate", "Hashed"),
    };
    Node::titled("Aggregate", title).fact("Strategy", strategy).fact("Partial Mode", "Simple")
}

fn set(title: &'static str, command: &str) -> Node {
    Node::titled("SetOp", title).fact("Strategy", "Hashed").fact("Command", command)
}
