//! Expressions as SQL text, as EXPLAIN shows conditions: with every operator in brackets and every
//! cast.
//!
//! What must hold:
//!
//! 1. The text grows linearly with the expression: a long shared operand is written once.
//! 2. Writing cannot fail. A register without a name gets one with a question mark.
//! 3. A constant is bare only where SQL reads it as of its own type.

use runtime::hash::HashMap;
use std::cell::Cell;

use bumpalo::Bump;

use super::{Call, Expr, QuantifiedOver};
use values::environment::Environment;
use values::text;
use values::types::{Type, Value, oid, registry};

/// Writes expressions with names for the registers they read.
pub struct Show<'a> {
    /// The registers' contents.
    pub names: &'a HashMap<u32, String>,
    /// Names that take precedence over `names`.
    pub own: &'a [(u32, String)],
    /// The session whose settings the text of values follows.
    pub session: &'a dyn Environment,
    /// The text of each shared operand, and whether it was written already.
    operands: Vec<(String, Cell<bool>)>,
}

/// The longest text, in bytes, of an operand that is repeated wherever it is read. A longer text is
/// written once: otherwise the text would double at each level of nesting.
const REPEATED: usize = 64;

impl<'a> Show<'a> {
    /// Writes expressions that read these registers.
    pub fn new(
        names: &'a HashMap<u32, String>,
        own: &'a [(u32, String)],
        session: &'a dyn Environment,
    ) -> Show<'a> {
        Show { names, own, session, operands: Vec::new() }
    }

    /// The text of an expression.
    pub fn text(&self, expr: &Expr) -> String {
        match expr {
            Expr::Const(value, type_) => self.constant(value, *type_),
            Expr::Column { register, .. } => self.name(*register),
            Expr::Param { index, .. } => format!("${}", index + 1),
            Expr::Operand { index, .. } => match self.operands.get(*index as usize) {
                Some((text, written)) if text.len() <= REPEATED || !written.replace(true) => text.clone(),
                _ => "(...)".to_owned(),
            },
            Expr::Shared(shared) => {
                let texts = shared.operands.iter().map(|operand| self.text(operand));
                let operands = texts.map(|text| (text, Cell::new(false))).collect();
                Show { operands, ..*self }.text(&shared.body)
            }
            Expr::Call(call) => self.call(call),
            Expr::And(parts) => format!("({})", self.list(parts, " AND ")),
            Expr::Or(parts) => format!("({})", self.list(parts, " OR ")),
            Expr::Not(input) => format!("(NOT {})", self.text(input)),
            Expr::Case(case) => {
                let branch = |(condition, result): &(Expr, Expr)| {
                    format!(" WHEN {} THEN {}", self.text(condition), self.text(result))
                };
                let branches: String = case.branches.iter().map(branch).collect();
                format!("CASE{branches} ELSE {} END", self.text(&case.otherwise))
            }
            Expr::Coalesce(parts, _) => format!("COALESCE({})", self.list(parts, ", ")),
            Expr::NullIf(call) => format!("NULLIF({})", self.list(&call.arguments, ", ")),
            Expr::Extreme(extreme) => {
                let name = if extreme.greatest { "GREATEST" } else { "LEAST" };
                format!("{name}({})", self.list(&extreme.arguments, ", "))
            }
            Expr::Cast(cast) => {
                format!("({})::{}", self.text(&cast.input), registry::format_type_exactly(cast.type_))
            }
            Expr::NullTest { input, negated } => format!("({} IS {}NULL)", self.text(input), not(*negated)),
            Expr::BoolTest { input, expected, negated } => {
                let what = match expected {
                    Some(true) => "TRUE",
                    Some(false) => "FALSE",
                    None => "UNKNOWN",
                };
                format!("({} IS {}{what})", self.text(input), not(*negated))
            }
            Expr::Distinct { equal, negated } => {
                let between = format!(" IS {}DISTINCT FROM ", not(*negated));
                format!("({})", self.list(&equal.arguments, &between))
            }
            Expr::Quantified(quantified) => {
                let over = match &quantified.right {
                    QuantifiedOver::Array(array) => self.text(array),
                    QuantifiedOver::List(list) => format!("ARRAY[{}]", self.list(list, ", ")),
                };
                let how = if quantified.all { "ALL" } else { "ANY" };
                format!("({} {} {how} ({over}))", self.text(&quantified.left), quantified.function.operator)
            }
            Expr::Array { elements, .. } => format!("ARRAY[{}]", self.list(elements, ", ")),
            Expr::Row { fields, .. } => format!("ROW({})", self.list(fields, ", ")),
            Expr::Subscript { array, indexes, .. } => {
                format!("{}[{}]", self.text(array), self.list(indexes, "]["))
            }
            Expr::Field { record, index, .. } => format!("({}).f{}", self.text(record), index + 1),
        }
    }

    /// The name of a register's content.
    pub fn name(&self, register: u32) -> String {
        let own = self.own.iter().find(|(own, _)| *own == register).map(|(_, name)| name);
        own.or_else(|| self.names.get(&register)).map_or_else(|| format!("?{register}"), String::clone)
    }

    /// The texts of several expressions with `between` between them.
    pub fn list(&self, parts: &[Expr], between: &str) -> String {
        parts.iter().map(|part| self.text(part)).collect::<Vec<_>>().join(between)
    }

    fn call(&self, call: &Call) -> String {
        match (call.function.operator, call.arguments.as_slice()) {
            ("", arguments) => format!("{}({})", call.function.name, self.list(arguments, ", ")),
            (operator, [one]) => format!("({operator} {})", self.text(one)),
            (operator, arguments) => format!("({})", self.list(arguments, &format!(" {operator} "))),
        }
    }

    /// The text of a constant: bare where SQL reads it as of its type, else quoted and cast.
    fn constant(&self, value: &Value, type_: Type) -> String {
        let arena = Bump::new();
        let bytes = match value {
            Value::Null => return format!("NULL::{}", registry::format_type_exactly(type_)),
            Value::Bool(value) => return value.to_string(),
            // The conversion has no safe points: this function cannot report an interrupt.
            _ => runtime::budget::within(usize::MAX - 1, || {
                text::to_bytes(value.datum_in(&arena), type_, self.session)
            }),
        };
        let shown = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default());
        let bare = match type_.oid {
            oid::INT4 => !shown.starts_with('-'),
            oid::NUMERIC => shown.contains('.') && !shown.starts_with('-'),
            _ => false,
        };
        if bare {
            return shown.into_owned();
        }
        format!("'{}'::{}", shown.replace('\'', "''"), registry::format_type_exactly(type_))
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}
