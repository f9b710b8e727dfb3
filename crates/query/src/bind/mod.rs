//! Binding: from parse trees to typed relational and scalar expressions.
//!
//! One [`Binder`] binds one statement. It assigns the statement's registers, keeps the name spaces
//! of the queries being bound (innermost last), and collects inferred parameter types. It decides
//! which lifted literals become parameters. What must hold: errors have PostgreSQL's code, wording
//! and position.

mod aggregate;
pub(crate) mod alike;
mod call;
mod column;
mod common;
mod compare;
mod constant;
mod decided;
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
mod target;
mod type_text;
mod types;
mod upsert;
mod window;

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::Node;
use runtime::hash::{HashMap, QuickMap};

pub(crate) use alike::{rename, same};
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

/// The registers of one source: which columns the planner reads, and into which registers.
#[derive(Debug, Default)]
pub(crate) struct SourceRegisters {
    /// The register of each column that is read, by position.
    pub columns: Vec<Option<Reg>>,
    /// Set if the statement locks or changes the row itself.
    pub identity: Option<RowIdentity>,
}

/// Binds one statement.
pub struct Binder<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) request: &'a Request<'a>,
    registers: Reg,
    /// Registers by source.
    pub(crate) sources: Vec<SourceRegisters>,
    levels: Vec<Level>,
    /// Whether the definition creates sequences, which its constants may name.
    pub(crate) makes_sequences: bool,
    /// Visible WITH queries, innermost last.
    common: Vec<common::Visible>,
    next_common: u32,
    /// Types of `$1`, ...; UNKNOWN until inferred.
    parameters: Vec<Type>,
    /// The number of the first lifted literal's parameter.
    first_literal: usize,
    /// For each literal, the type of the parameter it became.
    claimed: Vec<Option<Type>>,
    /// Literals found at two places. They must stay constants.
    pub(crate) refused: Vec<usize>,
    /// Whether constants at the current place may become parameters.
    lift: bool,
    /// Registers that hold a table's column unchanged: (table's OID, attribute number).
    origins: QuickMap<Reg, (u32, i16)>,
    /// Names and types of fields, by the register of a row value.
    records: QuickMap<Reg, Vec<(String, Type)>>,
    /// Tables that the statement uses, with their locks.
    pub(crate) locks: Vec<(u32, txn::TableLock)>,
    /// Whether the statement changes data or locks rows.
    pub(crate) writes: bool,
    depth: u32,
    /// Strings whose type was open, with their locations. Errors about their contents point there.
    texts: Vec<(String, i32)>,
    /// Whether the text must not contain parameters.
    pub(crate) bare: bool,
}

/// The deepest nesting of an expression. Evaluation has half of a fiber's stack, the part that
/// operators leave; a test measures that this depth fits.
const MAX_EXPRESSION_DEPTH: u32 = 1000;

/// PostgreSQL's limit on the columns of a query. Messages count columns in 16 bits.
const MAX_TARGETS: usize = 1664;

/// The deepest nesting of queries, for the same reason: a query is several operators, and operators
/// call each other.
const MAX_QUERY_DEPTH: usize = 100;

/// The state of binding one query.
#[derive(Default)]
struct Level {
    /// The visible names.
    entries: Vec<Entry>,
    /// Subqueries found in its expressions.
    sublinks: Vec<Sublink>,
    /// Which subqueries and calls are alike.
    twins: alike::Twins,
    /// The columns that each subquery reads.
    link_uses: HashMap<Reg, alike::LinkUses>,
    /// Aggregates found in its expressions.
    aggregates: Vec<AggregateCall>,
    /// The location of the last aggregate.
    aggregate_at: i32,
    /// Window functions found, by window.
    windows: Vec<Window>,
    /// Named windows.
    window_names: Vec<pg_query::protobuf::WindowDef>,
    /// Places in `window_names` of windows that a window function or another window refers to.
    windows_used: Vec<usize>,
    /// Set-returning functions found in the target list.
    sets: Vec<SetCall>,
    /// Set-returning functions found in window definitions.
    window_sets: Vec<SetCall>,
    /// Whether a window definition is being bound.
    in_window: bool,
    /// Number of calls of set-returning functions found, and the location of the last one.
    sets_met: usize,
    set_at: i32,
    /// The location of the last window function.
    window_at: i32,
    /// Locations of the calls of aggregates and window functions, by result register.
    calls_at: QuickMap<Reg, i32>,
    /// Columns read above the grouping and outside aggregates, and in GROUP BY, LIMIT and OFFSET.
    uses: Vec<Use>,
    /// Whether FROM names the recursive query whose term this is.
    reads_itself: bool,
    /// Ranges of entries that the item of FROM being bound may not name.
    barred: Vec<(std::ops::Range<usize>, Barred)>,
    /// The clause being bound.
    clause: Clause,
}

/// Why an item of FROM may not name a visible entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barred {
    /// RIGHT or FULL joins the item to the entry.
    Joined,
    /// The entry is the table that UPDATE or DELETE changes.
    Changed,
}

/// A column read at a place where grouping matters.
#[derive(Clone)]
struct Use {
    register: Reg,
    location: i32,
    /// Its name in errors.
    name: String,
    /// Whether a subquery reads it.
    inner: bool,
}

/// The clauses, distinguished as far as they allow different things.
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
    /// The source, if the entry is one.
    source: Option<SourceId>,
    /// The table, if the source is a table.
    table: Option<Arc<Table>>,
    /// Whether a function's single column also has the entry's name.
    scalar: bool,
    /// Whether an outer join may set its columns to NULL.
    nullable: bool,
}

#[derive(Clone, Debug)]
struct EntryColumn {
    name: String,
    value: ColumnValue,
    /// Whether USING merged it; then only the entry's name finds it.
    hidden: bool,
}

#[derive(Clone, Debug)]
enum ColumnValue {
    /// A column of a table or common table expression. It gets a register when first named.
    Source { source: SourceId, column: usize, type_: Type },
    /// A computed value.
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
            // The client's parameters come first. So their number must be known before the binder
            // meets the first literal.
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
            origins: QuickMap::default(),
            records: QuickMap::default(),
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
    /// Any semantic error in the statement.
    pub fn bind(&mut self, node: &NodeEnum) -> Result<Bound, SqlError> {
        match node {
            NodeEnum::SelectStmt(select) => {
                let query = match self.request.assigned {
                    None => self.query(select, None)?,
                    Some(assigned) => self.assigned_query(select, assigned)?,
                };
                Ok(Bound::Query(Box::new(query)))
            }
            NodeEnum::InsertStmt(insert) => self.insert(insert),
            NodeEnum::UpdateStmt(update) => self.update(update),
            NodeEnum::DeleteStmt(delete) => self.delete(delete),
            _ => Err(SqlError::unsupported("this statement")),
        }
    }

    /// The number of assigned registers.
    #[must_use]
    pub(crate) fn register_count(&self) -> u32 {
        self.registers
    }

    /// A new register.
    pub fn register(&mut self) -> Reg {
        self.registers += 1;
        self.registers - 1
    }

    /// The number of a new WITH query.
    pub(crate) fn common_number(&mut self) -> u32 {
        self.next_common += 1;
        self.next_common - 1
    }

    /// Assigns consecutive new registers; returns the first.
    pub(crate) fn register_block(&mut self, count: usize) -> Reg {
        let first = self.registers;
        self.registers += u32::try_from(count).unwrap_or(u32::MAX / 2);
        first
    }

    /// The result of binding: the parameters' types (literals included), how many are declared, and
    /// the use of each literal.
    ///
    /// # Errors
    /// 42P18 for a parameter whose type could not be inferred.
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
        // Literal i is parameter `declared + i`. The places of pinned literals stay unused.
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

    /// The character position in the client's text of a location in the parsed statement.
    ///
    /// It counts all characters before the location. Call it only to report an error; calls for
    /// each element of a long list would take quadratic time.
    pub(crate) fn position(&self, location: i32) -> Option<u32> {
        crate::parse::position(self.request.text, usize::try_from(location).ok()? + self.request.start)
    }

    /// The error 0A000 at a location.
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

    /// Runs `bind` inside a clause of the present query.
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

    /// Records the types that a new expression gives parameters.
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

    /// Requests that these expressions and the present query's subqueries are bound again with
    /// their literals as constants, if any were lifted.
    pub(super) fn refuse_lifted(&mut self, exprs: impl Iterator<Item = Expr>) {
        let mut params: Vec<(u32, Type)> = exprs.flat_map(|expr| expr.params()).collect();
        for mut link in self.level().sublinks.clone() {
            walk::sublink(&mut link, &mut |part| {
                if let walk::Part::Expr(expr) = part {
                    params.extend(expr.params());
                }
            });
        }
        self.refuse(params.into_iter());
    }

    /// Requests that the literals that these parameters stand for are bound again as constants.
    pub(super) fn refuse(&mut self, params: impl Iterator<Item = (u32, Type)>) {
        for (index, _) in params {
            if let Some(literal) = self.literal_of(index as usize)
                && !self.refused.contains(&literal)
            {
                self.refused.push(literal);
            }
        }
    }

    /// The literal that a parameter stands for. During binding, literal i is parameter
    /// `first_literal + i`.
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
    /// Their types: declared and inferred parameters first, then one for each literal.
    pub types: Arc<[Type]>,
    /// The number of parameters that are not literals.
    pub declared: usize,
    /// The use of each literal.
    pub uses: Vec<LiteralUse>,
}

/// A declared parameter type.
fn declared(oid: u32) -> Type {
    if oid == 0 { Type::UNKNOWN } else { Type::new(oid) }
}

/// The content of a node. Every node that the parser makes has one.
pub(crate) fn inner(node: &Node) -> Result<&NodeEnum, SqlError> {
    node.node.as_ref().ok_or_else(|| SqlError::internal("empty parse node"))
}

/// The content of an optional node that must be present.
pub(crate) fn inner_of(node: Option<&Node>) -> Result<&NodeEnum, SqlError> {
    inner(node.ok_or_else(|| SqlError::internal("missing parse node"))?)
}
