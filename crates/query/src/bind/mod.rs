//! Binding: parse trees to typed relational and scalar expressions.
//!
//! One [`Binder`] binds one statement. It hands out the statement's registers, keeps the name
//! spaces of the queries being bound (innermost last), collects parameter types as they are
//! inferred and decides which lifted literals become parameters. Errors have PostgreSQL's code,
//! wording and position.

mod aggregate;
mod alike;
mod call;
mod column;
mod common;
mod compare;
mod constant;
pub(crate) mod expr;
mod fields;
mod from;
mod from_function;
mod insert;
pub(crate) mod location;
pub(crate) mod modify;
mod named;
mod names;
mod order;
mod recursion;
pub(crate) mod references;
mod select;
mod set;
mod sets;
mod settle;
mod target;
mod type_text;
mod types;
mod upsert;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::Node;

pub(crate) use expr::flatten as flatten_condition;
use location::location;
pub use type_text::named_type;

use crate::bound::walk;
use crate::bound::{Bound, SourceId, Sublink, Window};
use crate::normalize::{Literal, LiteralUse};
use crate::plan::{AggregateCall, Reg, RowIdentity, SetCall};
use crate::request::{Context, Request};
use catalog::{Catalog, Table};
use expressions::expr::Expr;
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

/// The registers of one source: what the planner reads from a table, and where to.
#[derive(Debug, Default)]
pub struct SourceRegisters {
    /// The register of each column that is read, by position.
    pub columns: Vec<Option<Reg>>,
    /// Set when the row itself is locked or changed.
    pub identity: Option<RowIdentity>,
}

/// Binds one statement.
pub struct Binder<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) request: &'a Request<'a>,
    registers: Reg,
    /// By source.
    pub(crate) sources: Vec<SourceRegisters>,
    levels: Vec<Level>,
    /// The definition makes sequences: constants may name them.
    pub(crate) makes_sequences: bool,
    /// WITH queries in sight, innermost last.
    common: Vec<common::Visible>,
    next_common: u32,
    /// Types of `$1`, ...; UNKNOWN until inferred.
    parameters: Vec<Type>,
    /// The number of the first lifted literal's parameter.
    first_literal: usize,
    /// By literal: the type of the parameter it became.
    claimed: Vec<Option<Type>>,
    /// Literals met twice: they must stay constants.
    pub(crate) refused: Vec<usize>,
    /// Whether constants may become parameters where the binder is now.
    lift: bool,
    /// Registers that hold a table's column unchanged: (table's OID, attribute number).
    origins: HashMap<Reg, (u32, i16)>,
    /// Names and types of fields, by the register that holds a row value.
    records: HashMap<Reg, Vec<(String, Type)>>,
    /// Tables touched, with their locks.
    pub(crate) locks: Vec<(u32, txn::TableLock)>,
    /// Changes data or locks rows.
    pub(crate) writes: bool,
    depth: u32,
    /// Strings met whose type was open, and where they are: errors about their contents point
    /// there.
    texts: Vec<(String, i32)>,
    /// The text may have no parameters.
    pub(crate) bare: bool,
}

/// Expressions nest no deeper than this: they are evaluated on the half of a fiber's stack that
/// operators leave (a test measures that).
const MAX_EXPRESSION_DEPTH: u32 = 1000;

/// Columns of a query at most, as PostgreSQL's; messages count them in 16 bits.
const MAX_TARGETS: usize = 1664;

/// Queries nest no deeper than this, for the same reason: each is some operators, and operators
/// call each other.
const MAX_QUERY_DEPTH: usize = 100;

/// The state of binding one query.
#[derive(Default)]
struct Level {
    /// The names in sight.
    entries: Vec<Entry>,
    /// Subqueries met in its expressions.
    sublinks: Vec<Sublink>,
    /// Which of them are alike.
    twins: alike::Twins,
    /// The columns that each of them reads.
    link_uses: HashMap<Reg, alike::LinkUses>,
    /// Aggregates met in its expressions.
    aggregates: Vec<AggregateCall>,
    /// Where the last of them is.
    aggregate_at: i32,
    /// Window functions met, by window.
    windows: Vec<Window>,
    /// Named windows.
    window_names: Vec<pg_query::protobuf::WindowDef>,
    /// Places in `window_names` of those that a window function or another window refers to.
    windows_used: Vec<usize>,
    /// Set-returning functions met in the target list.
    sets: Vec<SetCall>,
    /// Set-returning functions met in window definitions.
    window_sets: Vec<SetCall>,
    /// A window definition is being bound.
    in_window: bool,
    /// Number of calls of set-returning functions met, and the place of the last one.
    sets_met: usize,
    set_at: i32,
    /// Where the last window function is.
    window_at: i32,
    /// Where the calls of aggregates and window functions are, by the registers of their results.
    calls_at: HashMap<Reg, i32>,
    /// Columns read above the grouping and outside of aggregates, and in GROUP BY, LIMIT and
    /// OFFSET.
    uses: Vec<Use>,
    /// FROM names the recursive query whose term this is.
    reads_itself: bool,
    /// Entries, by place, that the item of FROM being bound may not name.
    barred: Vec<(std::ops::Range<usize>, Barred)>,
    /// The clause being bound.
    clause: Clause,
}

/// Why an item of FROM may not name an entry that is in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barred {
    /// RIGHT or FULL joins the item to it.
    Joined,
    /// It is the table that UPDATE or DELETE changes.
    Changed,
}

/// A column read where grouping matters.
#[derive(Clone)]
struct Use {
    register: Reg,
    location: i32,
    /// As an error shows it.
    name: String,
    /// By a subquery.
    inner: bool,
}

/// The clauses, as far as they allow different things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Clause {
    #[default]
    Target,
    Where,
    Having,
    Join,
    Group,
    Order,
    Limit,
    Values,
    /// The only row of VALUES in INSERT.
    InsertedRow,
    From,
    Set,
    Returning,
    Filter,
    Window,
    Default,
    Check,
}

impl Clause {
    /// Its name in errors.
    fn name(self) -> &'static str {
        match self {
            Clause::Target => "SELECT",
            Clause::Where => "WHERE",
            Clause::Having => "HAVING",
            Clause::Join => "JOIN conditions",
            Clause::Group => "GROUP BY",
            Clause::Order => "ORDER BY",
            Clause::Limit => "LIMIT",
            Clause::Values | Clause::InsertedRow => "VALUES",
            Clause::From => "functions in FROM",
            Clause::Set => "UPDATE",
            Clause::Returning => "RETURNING",
            Clause::Filter => "FILTER",
            Clause::Window => "window definitions",
            Clause::Default => "DEFAULT expressions",
            Clause::Check => "check constraints",
        }
    }

    fn allows_aggregates(self) -> bool {
        matches!(self, Clause::Target | Clause::Having | Clause::Order | Clause::Window)
    }
}

/// One name of FROM and its columns.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The alias or table name; None for the merged columns of USING.
    name: Option<String>,
    /// The schema, for `schema.table.column`; None with an alias.
    schema: Option<String>,
    columns: Vec<EntryColumn>,
    /// The source, when the entry is one.
    source: Option<SourceId>,
    /// The table, when the source is one.
    table: Option<Arc<Table>>,
    /// A function's single column also goes by the entry's name.
    scalar: bool,
    /// An outer join may set its columns to NULL.
    nullable: bool,
}

#[derive(Clone, Debug)]
struct EntryColumn {
    name: String,
    value: ColumnValue,
    /// Merged by USING: only found with the entry's name.
    hidden: bool,
}

#[derive(Clone, Debug)]
enum ColumnValue {
    /// A column of a table or common table expression: gets a register when first named.
    Source { source: SourceId, column: usize, type_: Type },
    /// Anything computed.
    Value(Expr),
}

impl<'a> Binder<'a> {
    /// A binder for one statement. `refused`: literals that must stay constants.
    #[must_use]
    pub fn new(context: &'a Context<'a>, request: &'a Request<'a>, refused: &[usize]) -> Binder<'a> {
        let parameters: Vec<Type> =
            request.parameters.unwrap_or_default().iter().map(|&oid| declared(oid)).collect();
        let mut first_literal = parameters.len();
        if !request.literals.is_empty() {
            // The client's parameters come first, so their number must be known before the first
            // literal is met.
            crate::normalize::for_each_token(request.text, |start, end| {
                let number = request.text.get(start..end).and_then(|token| token.strip_prefix('$'));
                if let Some(number) = number.and_then(|digits| digits.parse().ok()) {
                    first_literal = first_literal.max(number);
                }
            });
        }
        Binder {
            context,
            request,
            registers: 0,
            sources: Vec::new(),
            levels: Vec::new(),
            common: Vec::new(),
            next_common: 0,
            parameters,
            first_literal,
            claimed: vec![None; request.literals.len()],
            refused: refused.to_vec(),
            lift: !request.literals.is_empty(),
            origins: HashMap::new(),
            records: HashMap::new(),
            locks: Vec::new(),
            writes: false,
            makes_sequences: false,
            depth: 0,
            texts: Vec::new(),
            bare: request.parameters.is_none(),
        }
    }

    /// Binds a query or a statement that changes rows.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn bind(&mut self, node: &NodeEnum) -> Result<Bound, SqlError> {
        match node {
            NodeEnum::SelectStmt(select) => {
                let query = self.query(select, None)?;
                Ok(Bound::Query(Box::new(query)))
            }
            NodeEnum::InsertStmt(insert) => self.insert(insert),
            NodeEnum::UpdateStmt(update) => self.update(update),
            NodeEnum::DeleteStmt(delete) => self.delete(delete),
            _ => Err(SqlError::unsupported("this statement")),
        }
    }

    /// The number of registers handed out.
    #[must_use]
    pub fn register_count(&self) -> u32 {
        self.registers
    }

    /// A new register.
    pub fn register(&mut self) -> Reg {
        self.registers += 1;
        self.registers - 1
    }

    /// Consecutive new registers: the first.
    pub fn register_block(&mut self, count: usize) -> Reg {
        let first = self.registers;
        self.registers += u32::try_from(count).unwrap_or(u32::MAX / 2);
        first
    }

    /// The parameters' types, literals included, how many of them are declared, and what became of
    /// each literal.
    ///
    /// # Errors
    /// 42P18 for a parameter whose type nothing told.
    pub fn finish(&self) -> Result<Parameters, SqlError> {
        for (index, type_) in self.parameters.iter().enumerate() {
            if type_.oid == oid::UNKNOWN {
                return Err(SqlError::new(
                    SqlState::INDETERMINATE_DATATYPE,
                    format!("could not determine data type of parameter ${}", index + 1),
                ));
            }
        }
        let mut types = self.parameters.clone();
        types.resize(self.first_literal.max(types.len()), Type::TEXT);
        let declared = types.len();
        let mut uses = Vec::with_capacity(self.claimed.len());
        // Literal i is parameter `declared + i`; the places of pinned ones stay unused.
        for claim in &self.claimed {
            let type_ = claim.filter(|type_| type_.oid != oid::UNKNOWN).unwrap_or(Type::TEXT);
            uses.push(match claim {
                None => LiteralUse::Pinned,
                Some(_) => LiteralUse::Parameter { index: types.len() as u32, type_ },
            });
            types.push(type_);
        }
        Ok(Parameters { types: types.into(), declared, uses })
    }

    pub(crate) fn catalog(&self) -> &'a Arc<Catalog> {
        self.context.catalog
    }

    /// The position in the client's text of a location in the parsed statement. Counts all
    /// characters before it: only for an error that is there, or a long list would be counted
    /// through again and again.
    pub(crate) fn position(&self, location: i32) -> Option<u32> {
        crate::parse::position(self.request.text, usize::try_from(location).ok()? + self.request.start)
    }

    /// 0A000 at a place.
    pub(crate) fn unsupported(&self, what: &str, location: i32) -> SqlError {
        SqlError::unsupported(what).at(self.position(location))
    }

    pub(crate) fn error(&self, code: SqlState, message: impl Into<String>, location: i32) -> SqlError {
        SqlError::new(code, message).at(self.position(location))
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Runs `bind` within a clause of the present query.
    pub(crate) fn in_clause<R>(
        &mut self,
        clause: Clause,
        bind: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let before = std::mem::replace(&mut self.level().clause, clause);
        let result = bind(self);
        self.level().clause = before;
        result
    }

    /// Runs `bind` with literals kept as constants.
    fn without_lifting<R>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let before = std::mem::replace(&mut self.lift, false);
        let result = bind(self);
        self.lift = before;
        result
    }

    /// Remembers the types that parameters were given in a newly built expression.
    fn note_parameters(&mut self, expr: &Expr) {
        let mut found = Vec::new();
        expr.walk(&mut |part| {
            if let Expr::Param { index, type_ } = part
                && type_.oid != oid::UNKNOWN
            {
                found.push((*index as usize, *type_));
            }
        });
        for (index, type_) in found {
            let known = if index >= self.first_literal && !self.claimed.is_empty() {
                self.literal_of(index).and_then(|literal| self.claimed[literal].as_mut())
            } else {
                self.parameters.get_mut(index)
            };
            if let Some(known) = known
                && known.oid == oid::UNKNOWN
            {
                *known = type_;
            }
        }
    }

    /// Has these expressions, and the subqueries of the present query, bound again with their
    /// literals as constants, where some are lifted.
    pub(super) fn refuse_lifted(&mut self, exprs: impl Iterator<Item = Expr>) {
        let mut params: Vec<(u32, Type)> = exprs.flat_map(|expr| expr.params()).collect();
        for mut link in self.level().sublinks.clone() {
            walk::sublink(&mut link, &mut |part| {
                if let walk::Part::Expr(expr) = part {
                    params.extend(expr.params());
                }
            });
        }
        for (index, _) in params {
            if let Some(literal) = self.literal_of(index as usize)
                && !self.refused.contains(&literal)
            {
                self.refused.push(literal);
            }
        }
    }

    /// Which literal a parameter stands for. Literal i is parameter `first_literal + i` while
    /// binding.
    fn literal_of(&self, index: usize) -> Option<usize> {
        index.checked_sub(self.first_literal).filter(|&literal| literal < self.claimed.len())
    }

    fn literals(&self) -> &'a [Literal] {
        self.request.literals
    }
}

/// The parameters of a bound statement.
#[derive(Debug)]
pub struct Parameters {
    /// Their types: declared and inferred ones, then one for each literal.
    pub types: Arc<[Type]>,
    /// How many are not literals.
    pub declared: usize,
    /// The outcome for each literal.
    pub uses: Vec<LiteralUse>,
}

/// A declared parameter type.
fn declared(oid: u32) -> Type {
    if oid == 0 { Type::UNKNOWN } else { Type::new(oid) }
}

/// The inside of a node; every node the parser makes has one.
pub(crate) fn inner(node: &Node) -> Result<&NodeEnum, SqlError> {
    node.node.as_ref().ok_or_else(|| SqlError::internal("empty parse node"))
}

/// The inside of an optional node.
pub(crate) fn inner_of(node: Option<&Node>) -> Result<&NodeEnum, SqlError> {
    inner(node.ok_or_else(|| SqlError::internal("missing parse node"))?)
}
