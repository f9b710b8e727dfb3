//! Functions in FROM, alone or several side by side (ROWS FROM).
//!
//! A plain function in FROM is a set of one row. Subqueries in the arguments belong to the item. An
//! item with subqueries becomes a lateral query, so that they run once for each row to its left,
//! before the functions.

use pg_query::NodeEnum;
use pg_query::protobuf::{Node, RangeFunction};

use super::call::function_name;
use super::{Binder, Clause, ColumnValue, Entry, EntryColumn, inner};
use crate::bound::{FromItem, OutputColumn, Query, QueryBody, Select, Source};
use crate::plan::{Reg, SetCall};
use expressions::expr::Expr;
use expressions::function::SetFunction;
use expressions::functions::Bound;
use values::error::{SqlError, SqlState};
use values::types::Type;

/// The functions of one item while it is being bound.
#[derive(Default)]
struct Functions {
    calls: Vec<SetCall>,
    /// Names, registers and types of all columns.
    columns: Vec<(String, Reg, Type)>,
    /// The first function's name.
    name: String,
}

impl Functions {
    fn add(&mut self, name: String, call: SetCall, columns: Vec<(String, Type)>) {
        let registers = call.output.iter();
        self.columns
            .extend(columns.into_iter().zip(registers).map(|((name, type_), reg)| (name, *reg, type_)));
        if self.calls.is_empty() {
            self.name = name;
        }
        self.calls.push(call);
    }
}

impl Binder<'_> {
    /// A function, or several, in FROM.
    pub(crate) fn range_function(
        &mut self,
        range: &RangeFunction,
    ) -> Result<(FromItem, Vec<Entry>), SqlError> {
        let links = self.level().sublinks.len();
        let mut functions = Functions::default();
        for item in &range.functions {
            let NodeEnum::List(parts) = inner(item)? else {
                return Err(SqlError::internal("function in FROM is no list"));
            };
            if !range.coldeflist.is_empty() || parts.items.get(1).is_some_and(|node| node.node.is_some()) {
                return Err(self.unsupported("a column definition list", -1));
            }
            let node = parts.items.first().ok_or_else(|| SqlError::internal("no function in FROM"))?;
            self.function_source(node, range.functions.len() > 1, &mut functions)?;
        }
        let Functions { calls, mut columns, name } = functions;
        // A single column gets the alias as its name, unless the function names it.
        let scalar = columns.len() == 1;
        if scalar
            && let Some(alias) = &range.alias
            && columns[0].0 == name
        {
            columns[0].0.clone_from(&alias.aliasname);
        }
        let ordinality = range.ordinality.then(|| self.register());
        if let Some(register) = ordinality {
            columns.push(("ordinality".to_owned(), register, Type::INT8));
        }
        let sublinks = self.level().sublinks.split_off(links);
        let id = self.source();
        let mut entry = Entry {
            name: Some(name),
            schema: None,
            columns: columns
                .iter()
                .map(|(name, register, type_)| entry_column(name, *register, *type_))
                .collect(),
            source: Some(id),
            table: None,
            scalar: scalar && ordinality.is_none(),
            nullable: false,
        };
        self.apply_alias(&mut entry, range.alias.as_ref())?;
        if sublinks.is_empty() {
            return Ok((FromItem::Source(id, Source::Function(calls, ordinality)), vec![entry]));
        }
        let output = columns.into_iter().map(|(name, register, type_)| OutputColumn {
            name,
            type_,
            register,
            origin: None,
        });
        let select = Select { sets: calls, ordinality, sublinks, ..Select::default() };
        let query = Query::of(QueryBody::Select(Box::new(select)), output.collect());
        Ok((FromItem::Source(id, Source::Query(Box::new(query))), vec![entry]))
    }

    /// Binds one function of an item in FROM. `among`: the item has several functions, so unnest of
    /// several arrays counts as several functions.
    fn function_source(&mut self, node: &Node, among: bool, to: &mut Functions) -> Result<(), SqlError> {
        let call = match inner(node)? {
            NodeEnum::FuncCall(call) => call,
            NodeEnum::SqlvalueFunction(_) | NodeEnum::CoalesceExpr(_) | NodeEnum::MinMaxExpr(_) => {
                let expr = self.in_clause(Clause::From, |binder| binder.expr(node))?;
                let (name, _) = super::select::column_name(node);
                self.once(name, expr, to);
                return Ok(());
            }
            _ => return Err(self.unsupported("this function in FROM", -1)),
        };
        let name = function_name(call).to_owned();
        let bound = self.in_clause(Clause::From, |binder| binder.resolve_call(call))?;
        match bound {
            Bound::Scalar(expr) => {
                self.refuse_aggregate_syntax(call)?;
                self.once(name, expr, to);
                Ok(())
            }
            Bound::Set { function, arguments, columns } => {
                self.refuse_aggregate_syntax(call)?;
                if among && function == SetFunction::Unnest && arguments.len() != columns.len() {
                    return Err(self.unsupported("this function in ROWS FROM", call.location));
                }
                let output: Vec<u32> = columns.iter().map(|_| self.register()).collect();
                let columns = columns.into_iter().map(|(name, type_)| (name.to_owned(), type_)).collect();
                to.add(name, SetCall { function, arguments, output }, columns);
                Ok(())
            }
            Bound::Aggregate { .. } => Err(self.error(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in functions in FROM",
                call.location,
            )),
            Bound::Window { .. } if call.over.is_none() => Err(self.no_over(call)),
            Bound::Window { .. } => Err(self.error(
                SqlState::WINDOWING_ERROR,
                "window functions are not allowed in functions in FROM",
                call.location,
            )),
        }
    }

    /// Adds a plain function, which returns one row.
    fn once(&mut self, name: String, expr: Expr, to: &mut Functions) {
        let (register, type_) = (self.register(), expr.type_());
        let call = SetCall { function: SetFunction::Once, arguments: vec![expr], output: vec![register] };
        to.add(name.clone(), call, vec![(name, type_)]);
    }
}

fn entry_column(name: &str, register: Reg, type_: Type) -> EntryColumn {
    EntryColumn {
        name: name.to_owned(),
        value: ColumnValue::Value(Expr::column(register, type_)),
        hidden: false,
    }
}
