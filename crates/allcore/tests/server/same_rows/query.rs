//! A query as a tree: its text, queries that mean the same with their joins in another order, and
//! smaller queries.
//!
//! What must hold:
//!
//! 1. Which rows a query gives, and their order where it has one, depends on the tables alone. So
//!    ORDER BY has all columns of the result.
//! 2. A condition names its tables by aliases that are unique in the whole query.

use crate::common::dice::Dice;

use super::tables::Class;

/// Brackets of a literal in a text, with its type before a bar. It is written in place or becomes a
/// parameter.
const OPEN: char = '\u{1}';
const CLOSE: char = '\u{2}';

/// The word before a subquery that reads the items of FROM before it.
pub const LATERAL: &str = "lateral ";

/// A literal in a text.
pub fn literal(type_: &str, value: &str) -> String {
    format!("{OPEN}{type_}|{value}{CLOSE}")
}

/// A text with its literals in place.
pub fn plain(text: &str) -> String {
    replaced(text, &mut |type_, value| match type_ {
        "int" | "bigint" | "numeric" => value.to_owned(),
        "text" => format!("'{value}'"),
        _ => format!("{type_} '{value}'"),
    })
}

/// A text with parameters in place of its literals, their types and their values.
pub fn with_parameters(text: &str) -> (String, Vec<String>, Vec<String>) {
    let (mut types, mut values) = (Vec::new(), Vec::new());
    let text = replaced(text, &mut |type_, value| {
        types.push(type_.to_owned());
        values.push(format!("'{value}'"));
        format!("${}", types.len())
    });
    (text, types, values)
}

fn replaced(text: &str, replace: &mut dyn FnMut(&str, &str) -> String) -> String {
    let mut parts = text.split(OPEN);
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (inside, rest) = part.split_once(CLOSE).unwrap();
        let (type_, value) = inside.split_once('|').unwrap();
        said += &replace(type_, value);
        said += rest;
    }
    said
}

/// The kind of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Inner,
    Left,
    Right,
    Full,
}

/// FROM.
#[derive(Clone, Debug)]
pub enum From {
    /// A table, a WITH query or a subquery with its alias.
    Item {
        text: String,
        alias: String,
    },
    Join {
        kind: Kind,
        left: Box<From>,
        right: Box<From>,
        on: Vec<String>,
    },
}

/// DISTINCT.
#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    No,
    All,
    /// DISTINCT ON a column, by which the result is ordered first.
    On(String),
}

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// WITH: names and texts.
    pub with: Vec<(String, String)>,
    pub from: From,
    pub conditions: Vec<String>,
    pub targets: Vec<(String, Class)>,
    pub distinct: Distinct,
    pub groups: Vec<String>,
    pub having: Vec<String>,
    /// A set operation with another query.
    pub with_set: Option<(&'static str, Box<Query>)>,
    /// ORDER BY: each column of the result, with its direction.
    pub order: Vec<(usize, &'static str)>,
    /// LIMIT and OFFSET, behind ORDER BY.
    pub limit: Option<(String, String)>,
}

impl From {
    /// The aliases of its items.
    fn aliases(&self) -> Vec<&str> {
        match self {
            From::Item { alias, .. } => vec![alias],
            From::Join { left, right, .. } => [left.aliases(), right.aliases()].concat(),
        }
    }

    fn text(&self) -> String {
        match self {
            From::Item { text, alias } => format!("{text} {alias}"),
            From::Join { kind, left, right, on } => {
                let kind = match kind {
                    Kind::Inner if on.is_empty() => "cross join",
                    Kind::Inner => "join",
                    Kind::Left => "left join",
                    Kind::Right => "right join",
                    Kind::Full => "full join",
                };
                let right = match &**right {
                    From::Join { .. } => format!("({})", right.text()),
                    From::Item { .. } => right.text(),
                };
                let on = match kind {
                    "cross join" => String::new(),
                    _ if on.is_empty() => " on true".to_owned(),
                    _ => format!(" on {}", on.join(" and ")),
                };
                format!("{} {kind} {right}{on}", left.text())
            }
        }
    }

    /// The same joins in another order. Outer joins only change sides.
    fn permuted(&self, dice: &mut Dice) -> From {
        match self {
            From::Item { .. } => self.clone(),
            From::Join { kind: Kind::Inner, .. } => {
                let (mut items, mut on) = (Vec::new(), Vec::new());
                self.region(&mut items, &mut on);
                let mut items: Vec<From> = items.iter().map(|item| item.permuted(dice)).collect();
                while items.len() > 1 {
                    let left = items.swap_remove(dice.roll(items.len()));
                    let right = items.swap_remove(dice.roll(items.len()));
                    let mut there = left.aliases();
                    there.extend(right.aliases());
                    let own = on.extract_if(.., |condition| {
                        let all = self.aliases();
                        all.iter().all(|alias| there.contains(alias) || !names(condition, alias))
                    });
                    let on = own.collect();
                    let (left, right) = (Box::new(left), Box::new(right));
                    items.push(From::Join { kind: Kind::Inner, left, right, on });
                }
                items.remove(0)
            }
            From::Join { kind, left, right, on } => {
                let (left, right) = (Box::new(left.permuted(dice)), Box::new(right.permuted(dice)));
                let on = on.clone();
                if dice.roll(2) == 0 {
                    return From::Join { kind: *kind, left, right, on };
                }
                let kind = match kind {
                    Kind::Left => Kind::Right,
                    Kind::Right => Kind::Left,
                    kind => *kind,
                };
                From::Join { kind, left: right, right: left, on }
            }
        }
    }

    /// The items and the conditions of the inner joins at the top.
    fn region<'f>(&'f self, items: &mut Vec<&'f From>, conditions: &mut Vec<String>) {
        match self {
            From::Join { kind: Kind::Inner, left, right, on } => {
                left.region(items, conditions);
                right.region(items, conditions);
                conditions.extend(on.iter().cloned());
            }
            item => items.push(item),
        }
    }

    /// The same with one join or one condition less.
    fn smaller(&self) -> Vec<From> {
        let From::Join { kind, left, right, on } = self else { return Vec::new() };
        let mut found = vec![(**left).clone(), (**right).clone()];
        let join = |left: &From, right: &From, kind: Kind, on: &[String]| From::Join {
            kind,
            left: Box::new(left.clone()),
            right: Box::new(right.clone()),
            on: on.to_vec(),
        };
        found.extend(without_one(on).map(|on| join(left, right, *kind, &on)));
        if *kind != Kind::Inner {
            found.push(join(left, right, Kind::Inner, on));
        }
        found.extend(left.smaller().iter().map(|smaller| join(smaller, right, *kind, on)));
        found.extend(right.smaller().iter().map(|smaller| join(left, smaller, *kind, on)));
        found
    }
}

/// Whether a text names an alias.
fn names(text: &str, alias: &str) -> bool {
    let named = format!("{alias}.");
    text.match_indices(&named).any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
}

/// The lists without one of their elements.
fn without_one<T: Clone>(list: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0..list.len()).map(|at| [&list[..at], &list[at + 1..]].concat())
}

impl Query {
    /// Its text. Literals stand in their brackets.
    pub fn text(&self) -> String {
        let with: Vec<String> = self.with.iter().map(|(name, text)| format!("{name} as {text}")).collect();
        let mut said = if with.is_empty() { String::new() } else { format!("with {} ", with.join(", ")) };
        said += &self.core();
        if let Some((operation, other)) = &self.with_set {
            said += &format!(" {operation} {}", other.core());
        }
        if !self.order.is_empty() {
            let keys: Vec<String> =
                self.order.iter().map(|(at, direction)| format!("{}{direction}", at + 1)).collect();
            said += &format!(" order by {}", keys.join(", "));
        }
        if let Some((limit, offset)) = &self.limit {
            said += &format!(" limit {limit} offset {offset}");
        }
        said
    }

    fn core(&self) -> String {
        let distinct = match &self.distinct {
            Distinct::No => String::new(),
            Distinct::All => "distinct ".to_owned(),
            Distinct::On(key) => format!("distinct on ({key}) "),
        };
        let targets: Vec<String> =
            self.targets.iter().enumerate().map(|(at, (text, _))| format!("{text} as c{at}")).collect();
        let mut said = format!("select {distinct}{} from {}", targets.join(", "), self.from.text());
        let clauses = [(" where ", &self.conditions, " and "), (" group by ", &self.groups, ", ")];
        for (clause, parts, between) in clauses.into_iter().chain([(" having ", &self.having, " and ")]) {
            if !parts.is_empty() {
                said += &format!("{clause}{}", parts.join(between));
            }
        }
        said
    }

    /// Whether rows come in an order that the query decides.
    pub fn is_ordered(&self) -> bool {
        !self.order.is_empty()
    }

    /// The same query with its joins in another order. LATERAL keeps the written one.
    pub fn permuted(&self, dice: &mut Dice) -> Query {
        if self.from.text().contains(LATERAL) {
            return self.clone();
        }
        let with_set =
            self.with_set.as_ref().map(|(operation, other)| (*operation, Box::new(other.permuted(dice))));
        Query { from: self.from.permuted(dice), with_set, ..self.clone() }
    }

    /// Queries with one part less. Some are no queries: they name a table that is gone.
    pub fn smaller(&self) -> Vec<Query> {
        let mut found = Vec::new();
        let mut add = |change: &dyn Fn(&mut Query)| {
            let mut query = self.clone();
            change(&mut query);
            found.push(query);
        };
        if self.with_set.is_some() {
            add(&|query| query.with_set = None);
        }
        for from in self.from.smaller() {
            add(&|query| query.from = from.clone());
        }
        for conditions in without_one(&self.conditions) {
            add(&|query| query.conditions.clone_from(&conditions));
        }
        for having in without_one(&self.having) {
            add(&|query| query.having.clone_from(&having));
        }
        for with in without_one(&self.with) {
            add(&|query| query.with.clone_from(&with));
        }
        for groups in without_one(&self.groups) {
            add(&|query| query.groups.clone_from(&groups));
        }
        if self.limit.is_some() {
            add(&|query| query.limit = None);
        } else if self.is_ordered() && !matches!(self.distinct, Distinct::On(_)) {
            add(&|query| query.order.clear());
        }
        if self.distinct == Distinct::All {
            add(&|query| query.distinct = Distinct::No);
        }
        if self.targets.len() > 1 && self.with_set.is_none() && !self.is_ordered() {
            for targets in without_one(&self.targets) {
                add(&|query| query.targets.clone_from(&targets));
            }
        }
        found
    }
}
