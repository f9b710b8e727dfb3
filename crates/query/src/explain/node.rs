//! A node as EXPLAIN shows it.

use super::{Actual, Memory};
use crate::plan::Estimate;

/// A node.
pub(super) struct Node {
    /// The node with what it reads, as text shows it.
    pub(super) title: String,
    /// Its kind alone.
    pub(super) kind: &'static str,
    /// The properties of the kind that JSON shows, beside its name.
    pub(super) facts: Vec<(&'static str, String)>,
    /// Conditions and keys.
    pub(super) details: Vec<(&'static str, Detail)>,
    /// The rows that conditions of this node removed in one loop; None without ANALYZE.
    pub(super) removed: Option<f64>,
    /// The figures of kept rows, with ANALYZE.
    pub(super) kept: Option<Memory>,
    /// None for a step of a chain of set operations but the last: one operator runs them all.
    pub(super) figures: Option<NodeFigures>,
    pub(super) children: Vec<Child>,
}

/// The estimate of a node, and its figures in an execution.
#[derive(Clone, Copy)]
pub(super) struct NodeFigures {
    pub(super) estimate: Estimate,
    /// Whether the planner took a method that is off.
    pub(super) disabled: bool,
    /// Average bytes of its rows.
    pub(super) width: u64,
    /// None without ANALYZE.
    pub(super) actual: Option<Actual>,
}

/// The text of a detail.
pub(super) enum Detail {
    Text(String),
    List(Vec<String>),
}

/// A node below another one.
pub(super) struct Child {
    pub(super) role: Role,
    pub(super) node: Node,
}

/// The role of a node for the one above.
#[derive(Clone, PartialEq)]
pub(super) enum Role {
    Outer,
    Inner,
    Member,
    /// A subquery that runs once, by its label.
    InitPlan(String),
    /// A subquery that runs for each row, by its label.
    SubPlan(String),
}

impl Role {
    /// The name in JSON.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Role::Outer => "Outer",
            Role::Inner => "Inner",
            Role::Member => "Member",
            Role::InitPlan(_) => "InitPlan",
            Role::SubPlan(_) => "SubPlan",
        }
    }

    /// The label of a subquery.
    pub(super) fn label(&self) -> Option<&str> {
        match self {
            Role::InitPlan(label) | Role::SubPlan(label) => Some(label),
            _ => None,
        }
    }
}

impl Node {
    /// A node of this kind, which text shows without more.
    pub(super) fn new(kind: &'static str) -> Node {
        Node::titled(kind, kind)
    }

    pub(super) fn titled(kind: &'static str, title: impl Into<String>) -> Node {
        let (facts, details, children) = (Vec::new(), Vec::new(), Vec::new());
        let (removed, kept, figures) = (None, None, None);
        Node { title: title.into(), kind, facts, details, removed, kept, figures, children }
    }

    pub(super) fn fact(mut self, key: &'static str, value: impl Into<String>) -> Node {
        self.facts.push((key, value.into()));
        self
    }

    pub(super) fn text(mut self, label: &'static str, text: Option<String>) -> Node {
        self.details.extend(text.map(|text| (label, Detail::Text(text))));
        self
    }

    pub(super) fn list(mut self, label: &'static str, list: Vec<String>) -> Node {
        if !list.is_empty() {
            self.details.push((label, Detail::List(list)));
        }
        self
    }

    pub(super) fn kept(mut self, kept: Memory) -> Node {
        self.kept = Some(kept);
        self
    }

    pub(super) fn child(mut self, role: Role, node: Node) -> Node {
        self.children.push(Child { role, node });
        self
    }

    /// The node with one more condition on its rows, which removed so many of them in one loop.
    pub(super) fn filtered(mut self, condition: String, removed: Option<f64>) -> Node {
        match self.details.iter_mut().find(|(label, _)| *label == "Filter") {
            Some((_, Detail::Text(own))) => *own = format!("({own} AND {condition})"),
            _ => self.details.push(("Filter", Detail::Text(condition))),
        }
        self.removed = removed.map(|removed| self.removed.unwrap_or(0.0) + removed);
        self
    }

    /// The children in PostgreSQL's order: subqueries that run once, inputs, other subqueries.
    pub(super) fn ordered_children(&self) -> impl Iterator<Item = &Child> {
        let of = |place: u8| self.children.iter().filter(move |child| place_of(&child.role) == place);
        of(0).chain(of(1)).chain(of(2))
    }
}

fn place_of(role: &Role) -> u8 {
    match role {
        Role::InitPlan(_) => 0,
        Role::Outer | Role::Inner | Role::Member => 1,
        Role::SubPlan(_) => 2,
    }
}
