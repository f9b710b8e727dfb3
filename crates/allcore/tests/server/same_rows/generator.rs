//! Random queries.
//!
//! What must hold: no query of it fails, whatever the order in which its parts are computed. So no
//! expression divides, overflows or reads more than one row of a scalar subquery.

use crate::common::dice::Dice;

use super::query::{Distinct, From, Kind, LATERAL, Query, literal};
use super::tables::{COLUMNS, Class, TABLES, value};

const CLASSES: [Class; 6] = [Class::Int, Class::Numeric, Class::Text, Class::Long, Class::Date, Class::Bool];
const COMPARISONS: [&str; 6] = ["=", "<", "<=", ">", ">=", "<>"];
const KINDS: [Kind; 7] =
    [Kind::Inner, Kind::Inner, Kind::Inner, Kind::Left, Kind::Left, Kind::Right, Kind::Full];
const PATTERNS: [&str; 8] = ["a%", "ab%", "%b", "_b%", "a\\%%", "%", "", "b_"];

/// A column that an expression may name.
#[derive(Clone, Debug)]
struct Column {
    name: String,
    class: Class,
}

type Scope = [Column];

/// Makes random queries.
pub struct Generator<'d> {
    pub dice: &'d mut Dice,
    /// Aliases given so far.
    aliases: usize,
    /// The WITH queries of the query being made, and the classes of their columns.
    tables: Vec<(String, Vec<Class>)>,
    /// Whether the query has read the table with many rows. It is read once.
    has_many: bool,
}

impl<'d> Generator<'d> {
    pub fn new(dice: &'d mut Dice) -> Generator<'d> {
        Generator { dice, aliases: 0, tables: Vec::new(), has_many: false }
    }

    /// A whole query.
    pub fn query(&mut self) -> Query {
        (self.aliases, self.has_many) = (0, false);
        self.tables.clear();
        let mut with = Vec::new();
        for number in 0..[0, 0, 0, 1, 2][self.dice.roll(5)] {
            let query = self.select(1, None, &[]);
            let kept = self.pick(&["", "materialized ", "not materialized "]);
            let classes = query.targets.iter().map(|(_, class)| *class).collect();
            with.push((format!("w{number}"), format!("{kept}({})", query.text())));
            self.tables.push((format!("w{number}"), classes));
        }
        let items = 1 + self.dice.roll(5);
        let mut query = self.select(items, None, &[]);
        query.with = with;
        if self.dice.roll(8) == 0 && !matches!(query.distinct, Distinct::On(_)) {
            let classes: Vec<Class> = query.targets.iter().map(|(_, class)| *class).collect();
            let operation =
                self.pick(&["union all", "union all", "union", "intersect", "except", "except all"]);
            query.with_set = Some((operation, Box::new(self.select(1, Some(&classes), &[]))));
        }
        if self.dice.roll(2) == 0 {
            self.order(&mut query);
        }
        query
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.roll(from.len())]
    }

    /// True once in so many times.
    fn one_in(&mut self, times: usize) -> bool {
        self.dice.roll(times) == 0
    }

    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("q{}", self.aliases)
    }

    /// Orders a query by all its columns.
    fn order(&mut self, query: &mut Query) {
        let mut columns: Vec<usize> = (0..query.targets.len()).collect();
        let first = match query.order.first() {
            Some((first, _)) => *first,
            None => self.dice.roll(columns.len()),
        };
        columns.swap(0, first);
        let directions = ["", "", " desc", " nulls first", " desc nulls last"];
        query.order = columns.into_iter().map(|at| (at, self.pick(&directions))).collect();
        if self.dice.roll(3) > 0 {
            let (limit, offset) = (self.dice.roll(9), [0, 0, 2][self.dice.roll(3)]);
            query.limit =
                Some((literal("bigint", &limit.to_string()), literal("bigint", &offset.to_string())));
        }
    }

    /// A SELECT over so many items of FROM. `outer`: the columns around it.
    fn select(&mut self, items: usize, wanted: Option<&[Class]>, outer: &Scope) -> Query {
        let (from, scope) = self.from(items, outer);
        let around = [&scope[..], outer].concat();
        let conditions =
            (0..[0, 0, 1, 1, 2][self.dice.roll(5)]).map(|_| self.condition(&around, 2)).collect();
        let classes = match wanted {
            Some(wanted) => wanted.to_vec(),
            // A number, so that all items of FROM have a pair of columns to join them by.
            None => {
                let others = self.dice.roll(4);
                [Class::Int].into_iter().chain((0..others).map(|_| self.pick(&CLASSES))).collect()
            }
        };
        let mut query = Query {
            with: Vec::new(),
            from,
            conditions,
            targets: Vec::new(),
            distinct: Distinct::No,
            groups: Vec::new(),
            having: Vec::new(),
            with_set: None,
            order: Vec::new(),
            limit: None,
        };
        match self.dice.roll(8) {
            0..2 => self.grouped(&mut query, &classes, &scope),
            2 => {
                query.targets = self.targets(&classes, &scope, 1);
                query.distinct = Distinct::All;
            }
            3 if wanted.is_none() => {
                let key = self.column(None, &scope);
                query.targets = self.targets(&classes, &scope, 0);
                query.targets.insert(0, (key.name.clone(), key.class));
                query.distinct = Distinct::On(key.name);
                query.order = vec![(0, "")];
                self.order(&mut query);
            }
            4 if wanted.is_none() => self.windowed(&mut query, &classes, &scope),
            _ => query.targets = self.targets(&classes, &scope, 2),
        }
        query
    }

    fn targets(&mut self, classes: &[Class], scope: &Scope, depth: usize) -> Vec<(String, Class)> {
        classes.iter().map(|&class| (self.expression(class, scope, depth), class)).collect()
    }

    // FROM.

    fn from(&mut self, items: usize, outer: &Scope) -> (From, Vec<Column>) {
        if items == 1 {
            return self.item(outer, false);
        }
        let first = if self.one_in(3) { 1 + self.dice.roll(items - 1) } else { items - 1 };
        let (left, left_scope) = self.from(first, outer);
        let kind = self.pick(&KINDS);
        let sees = matches!(kind, Kind::Inner | Kind::Left) && items - first == 1;
        let (right, right_scope) = match sees && self.one_in(8) {
            true => self.item(&[&left_scope[..], outer].concat(), true),
            false => self.from(items - first, outer),
        };
        let mut scope = [&left_scope[..], &right_scope[..]].concat();
        let mut on = Vec::new();
        let key = right_scope.iter().find(|column| column.name.ends_with(".k"));
        let equal = match key.filter(|_| kind == Kind::Left && self.one_in(3)) {
            Some(key) => format!("{} = {}", self.column(Some(Class::Int), &left_scope).name, key.name),
            None => self.pair(&left_scope, &right_scope),
        };
        if kind == Kind::Full || !self.one_in(12) {
            on.push(equal);
        }
        if kind != Kind::Full && self.one_in(3) {
            on.push(self.condition(&scope, 1));
        }
        // Nothing reads the columns of some nullable sides.
        if kind == Kind::Left && self.one_in(3) {
            scope = left_scope;
        }
        (From::Join { kind, left: Box::new(left), right: Box::new(right), on }, scope)
    }

    /// An equality of two columns, the more often the fewer values they have in common.
    fn pair(&mut self, left: &Scope, right: &Scope) -> String {
        for _ in 0..9 {
            let (one, other) = (self.tested(left), self.tested(right));
            let fits = one.class == other.class && (one.class != Class::Bool || self.one_in(3));
            if fits {
                return format!("{} = {}", one.name, other.name);
            }
        }
        let (one, other) = (self.column(Some(Class::Int), left), self.column(Some(Class::Int), right));
        format!("{} = {}", one.name, other.name)
    }

    fn item(&mut self, outer: &Scope, lateral: bool) -> (From, Vec<Column>) {
        let alias = self.alias();
        let columns = |classes: &[Class]| -> Vec<Column> {
            let name =
                |(at, class): (usize, &Class)| Column { name: format!("{alias}.c{at}"), class: *class };
            classes.iter().enumerate().map(name).collect()
        };
        if !lateral && !self.tables.is_empty() && self.one_in(3) {
            let (text, classes) = self.tables[self.dice.roll(self.tables.len())].clone();
            return (From::Item { text, alias: alias.clone() }, columns(&classes));
        }
        if lateral || self.one_in(8) {
            let items = 1 + self.dice.roll(2);
            let mut query = self.select(items, None, outer);
            if self.one_in(3) {
                self.order(&mut query);
            }
            let classes: Vec<Class> = query.targets.iter().map(|(_, class)| *class).collect();
            let text = format!("{}({})", if lateral { LATERAL } else { "" }, query.text());
            return (From::Item { text, alias: alias.clone() }, columns(&classes));
        }
        (From::Item { text: self.table(), alias: alias.clone() }, table_columns(&alias))
    }

    fn table(&mut self) -> String {
        let tables = if self.has_many { TABLES - 1 } else { TABLES };
        // The first table has at most one row.
        let table = if self.one_in(12) { 0 } else { 1 + self.dice.roll(tables - 1) };
        self.has_many |= table + 1 == TABLES;
        format!("t{table}")
    }

    // Expressions.

    /// A column of a class, or of any. A scope has at least one number.
    fn column(&mut self, class: Option<Class>, scope: &Scope) -> Column {
        let fits: Vec<&Column> =
            scope.iter().filter(|column| class.is_none_or(|class| column.class == class)).collect();
        match fits.len() {
            0 => scope[0].clone(),
            count => fits[self.dice.roll(count)].clone(),
        }
    }

    /// A column that conditions read.
    fn tested(&mut self, scope: &Scope) -> Column {
        let tested: Vec<&Column> = scope.iter().filter(|column| column.class != Class::Long).collect();
        tested[self.dice.roll(tested.len())].clone()
    }

    fn literal(&mut self, class: Class) -> String {
        let type_ = match class {
            Class::Int => "int",
            Class::Numeric => "numeric",
            Class::Text | Class::Long => "text",
            Class::Date => "date",
            Class::Bool => "boolean",
        };
        literal(type_, &value(class, self.dice))
    }

    fn expression(&mut self, class: Class, scope: &Scope, depth: usize) -> String {
        let column = self.column(Some(class), scope);
        let other = self.column(Some(class), scope);
        let has = column.class == class;
        if !has {
            return format!("cast({} as {})", self.literal(class), type_of(class));
        }
        match self.dice.roll(if depth == 0 { 4 } else { 9 }) {
            4 => format!("coalesce({}, {})", column.name, self.literal(class)),
            5 => format!(
                "case when {} then {} else {} end",
                self.condition(scope, depth - 1),
                column.name,
                other.name
            ),
            6 if class == Class::Bool => format!("({})", self.condition(scope, depth - 1)),
            6 => format!("nullif({}, {})", column.name, other.name),
            7 => match class {
                Class::Int => format!("{} + {}", column.name, other.name),
                Class::Numeric => format!("{} * 2", column.name),
                Class::Text | Class::Long => format!("{} || {}", column.name, self.literal(class)),
                Class::Date => format!("{} + 1", column.name),
                Class::Bool => format!("not {}", column.name),
            },
            8 => self.scalar(class, scope),
            _ => column.name,
        }
    }

    /// A scalar subquery of at most one row.
    fn scalar(&mut self, class: Class, outer: &Scope) -> String {
        let alias = self.alias();
        let own = table_columns(&alias);
        let (table, column) = (self.table(), self.column(Some(class), &own));
        let matched = self.matched(&own, outer);
        if class != Class::Bool && self.one_in(2) {
            let function = self.pick(&["min", "max"]);
            return format!("(select {function}({}) from {table} {alias} where {matched})", column.name);
        }
        let direction = self.pick(&["", " desc"]);
        let name = column.name;
        format!("(select {name} from {table} {alias} where {matched} order by {name}{direction} limit 1)")
    }

    /// A condition that compares the rows of a subquery with those around, or not.
    fn matched(&mut self, own: &Scope, outer: &Scope) -> String {
        let mut parts = Vec::new();
        if !outer.is_empty() && !self.one_in(4) {
            parts.push(self.pair(own, outer));
        }
        if parts.is_empty() || self.one_in(3) {
            let around = if outer.is_empty() { own.to_vec() } else { [own, outer].concat() };
            let scope = if self.one_in(3) { &around[..] } else { own };
            parts.push(self.condition(scope, 0));
        }
        parts.join(" and ")
    }

    fn condition(&mut self, scope: &Scope, depth: usize) -> String {
        let column = self.tested(scope);
        let Column { name, class } = &column;
        let class = *class;
        if depth > 0 {
            match self.dice.roll(12) {
                0 | 1 => {
                    let parts: Vec<String> =
                        (0..2 + self.dice.roll(2)).map(|_| self.condition(scope, depth - 1)).collect();
                    return format!("({})", parts.join(" or "));
                }
                2 => {
                    return format!(
                        "({} and {})",
                        self.condition(scope, depth - 1),
                        self.condition(scope, depth - 1)
                    );
                }
                3 => return format!("not ({})", self.condition(scope, depth - 1)),
                7 => {
                    let test = self.pick(&["is true", "is not true", "is false", "= true", "= false"]);
                    return format!("({}) {test}", self.condition(scope, depth - 1));
                }
                4 | 5 => return self.subquery(scope, depth),
                6 => {
                    return format!(
                        "{name} {} {}",
                        self.pick(&COMPARISONS),
                        self.expression(class, scope, 2)
                    );
                }
                _ => {}
            }
        }
        let not = self.pick(&["", "", "not "]);
        match self.dice.roll(12) {
            0 => format!("{name} is {not}null"),
            1 => format!("{name} {not}between {} and {}", self.literal(class), self.literal(class)),
            2 | 3 => {
                let values: Vec<String> = (0..1 + self.dice.roll(4)).map(|_| self.literal(class)).collect();
                match self.one_in(3) {
                    true => format!("{name} = any(array[{}])", values.join(", ")),
                    false => format!("{name} {not}in ({})", values.join(", ")),
                }
            }
            4 if class == Class::Text => {
                let pattern = self.pick(&PATTERNS);
                format!("{name} {not}like {}", literal("text", pattern))
            }
            5 | 6 => self.row_values(scope),
            7 => {
                let other = self.column(Some(class), scope);
                format!("{name} is {not}distinct from {}", other.name)
            }
            8 => {
                let other = self.column(Some(class), scope);
                format!("{name} {} {}", self.pick(&COMPARISONS), other.name)
            }
            _ if class == Class::Bool => format!("{not}{name}"),
            9..11 => format!("{name} {} {}", self.pick(&COMPARISONS), self.literal(class)),
            _ => format!("{name} = {}", self.literal(class)),
        }
    }

    fn row_values(&mut self, scope: &Scope) -> String {
        let columns = [self.tested(scope), self.tested(scope)];
        let row = |generator: &mut Self| {
            format!("({}, {})", generator.literal(columns[0].class), generator.literal(columns[1].class))
        };
        let names = format!("({}, {})", columns[0].name, columns[1].name);
        if self.one_in(3) {
            return format!("{names} in ({}, {})", row(self), row(self));
        }
        format!("{names} {} {}", self.pick(&COMPARISONS), row(self))
    }

    /// EXISTS, IN and their negations, over one or two tables.
    fn subquery(&mut self, outer: &Scope, depth: usize) -> String {
        let items = if self.one_in(4) { 2 } else { 1 };
        let seen = if self.one_in(3) { outer } else { &[] };
        let (from, own) = self.from(items, seen);
        let from = Query {
            with: Vec::new(),
            from,
            conditions: vec![self.matched(&own, outer)],
            targets: vec![("1".to_owned(), Class::Int)],
            distinct: Distinct::No,
            groups: Vec::new(),
            having: Vec::new(),
            with_set: None,
            order: Vec::new(),
            limit: None,
        };
        let not = self.pick(&["", "not "]);
        if depth == 0 || self.one_in(2) {
            let limit = match self.one_in(4) {
                true => format!(" limit {}", self.dice.roll(3)),
                false => String::new(),
            };
            return format!("{not}exists ({}{limit})", from.text());
        }
        let (column, wanted) = (self.tested(&own), self.tested(outer));
        let column =
            if column.class == wanted.class { column } else { self.column(Some(wanted.class), &own) };
        if column.class != wanted.class {
            return format!("{not}exists ({})", from.text());
        }
        let inner = Query { targets: vec![(column.name, column.class)], ..from };
        let wanted = match self.one_in(5) {
            true => Column { name: self.literal(wanted.class), class: wanted.class },
            false => wanted,
        };
        match self.dice.roll(5) {
            0 => format!("{} {} any ({})", wanted.name, self.pick(&COMPARISONS), inner.text()),
            1 => format!("{} {} all ({})", wanted.name, self.pick(&COMPARISONS), inner.text()),
            _ => format!("{} {not}in ({})", wanted.name, inner.text()),
        }
    }

    // Groups and windows.

    fn aggregate(&mut self, class: Class, scope: &Scope) -> String {
        let column = self.column(Some(class), scope);
        let number = self.column(Some(Class::Int), scope).name;
        let distinct = self.pick(&["", "", "distinct "]);
        let filter = match self.one_in(6) {
            true => format!(" filter (where {})", self.condition(scope, 0)),
            false => String::new(),
        };
        let has = column.class == class;
        match class {
            Class::Int => match self.dice.roll(4) {
                0 => format!("count(*){filter}"),
                1 => {
                    let any = self.column(None, scope);
                    format!("count({distinct}{}){filter}", any.name)
                }
                _ => format!("{}({number}){filter}", self.pick(&["min", "max"])),
            },
            // Numbers of one scale: equal ones look alike.
            Class::Numeric if !has || self.one_in(2) => {
                format!("cast(sum({distinct}{number}){filter} as numeric(12, 2))")
            }
            Class::Numeric => {
                let function = self.pick(&["avg", "sum"]);
                format!("round({function}({distinct}{}){filter}, 2)", column.name)
            }
            Class::Bool if has => format!("{}({}){filter}", self.pick(&["bool_and", "bool_or"]), column.name),
            Class::Bool => format!("count(*){filter} > 1"),
            Class::Text if has && self.one_in(2) => {
                format!("string_agg({0}, ',' order by {0} desc){filter}", column.name)
            }
            _ if has => format!("{}({}){filter}", self.pick(&["min", "max"]), column.name),
            _ => format!("max(cast(null as {})){filter}", type_of(class)),
        }
    }

    fn grouped(&mut self, query: &mut Query, classes: &[Class], scope: &Scope) {
        let keys: Vec<Column> = (0..self.dice.roll(3)).map(|_| self.column(None, scope)).collect();
        for &class in classes {
            let key = keys.iter().find(|key| key.class == class).filter(|_| self.dice.roll(2) == 0);
            let text = match key {
                Some(key) => key.name.clone(),
                None => self.aggregate(class, scope),
            };
            query.targets.push((text, class));
        }
        if keys.is_empty() {
            // Without a key or an aggregate there would be no group.
            query.having.push("count(*) >= 0".to_owned());
        }
        query.groups = keys.into_iter().map(|key| key.name).collect();
        query.groups.dedup();
        if self.one_in(3) {
            let (aggregate, literal) = (self.aggregate(Class::Int, scope), self.literal(Class::Int));
            query.having.push(format!("{aggregate} {} {literal}", self.pick(&COMPARISONS)));
        }
    }

    /// Window functions that give equal rows equal values, or one that numbers rows by all other
    /// columns of the result.
    fn windowed(&mut self, query: &mut Query, classes: &[Class], scope: &Scope) {
        query.targets = self.targets(classes, scope, 0);
        let all: Vec<String> = query.targets.iter().map(|(text, _)| text.clone()).collect();
        if self.one_in(3) {
            let partition = self.column(None, scope).name;
            let call = format!("row_number() over (partition by {partition} order by {})", all.join(", "));
            query.targets.push((call, Class::Int));
            return;
        }
        for _ in 0..1 + self.dice.roll(2) {
            let partition = match self.one_in(3) {
                true => String::new(),
                false => format!("partition by {} ", self.column(None, scope).name),
            };
            let (key, direction) = (self.column(None, scope).name, self.pick(&["", " desc", " nulls first"]));
            let number = self.column(Some(Class::Int), scope).name;
            let over = format!("over ({partition}order by {key}{direction})");
            let call = match self.dice.roll(5) {
                0 => format!("rank() {over}"),
                1 => format!("dense_rank() {over}"),
                2 => format!("count(*) over ({partition})"),
                3 => format!("max({number}) {over}"),
                _ => {
                    query
                        .targets
                        .push((format!("cast(sum({number}) {over} as numeric(12, 2))"), Class::Numeric));
                    continue;
                }
            };
            query.targets.push((call, Class::Int));
        }
    }
}

/// The columns of a table, by an alias.
fn table_columns(alias: &str) -> Vec<Column> {
    let column = |&(name, class, _): &(&str, Class, &str)| Column { name: format!("{alias}.{name}"), class };
    COLUMNS.iter().map(column).collect()
}

fn type_of(class: Class) -> &'static str {
    match class {
        Class::Int => "int",
        Class::Numeric => "numeric",
        Class::Text | Class::Long => "text",
        Class::Date => "date",
        Class::Bool => "boolean",
    }
}
