//! Constants and parameters, and the lifting of literals.
//!
//! What must hold: a literal becomes a parameter only if nothing depends on its value. Any other
//! constant stays as it is.

use pg_query::NodeEnum;
use pg_query::protobuf::{AConst, Node, ParamRef, a_const};

use super::Binder;
use crate::normalize::LiteralClass;
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::environment::NoSession;
use values::error::{SqlError, SqlState};
use values::text::integer::parse_integer;
use values::types::{Type, Value, oid};

/// PostgreSQL's limit: `$65536` and above are no parameters.
const MAX_PARAMETERS: i32 = 65_535;
/// The longest text of a literal that is read for estimates, in bytes.
const LONGEST_PEEKED: usize = 1024;

impl Binder<'_> {
    /// A constant: a lifted parameter if possible, otherwise itself.
    pub(crate) fn constant(&mut self, constant: &AConst) -> Result<Expr, SqlError> {
        if let Some(lifted) = self.lift_constant(constant) {
            return Ok(lifted);
        }
        self.fixed_constant(constant)
    }

    /// A constant that stays a constant.
    pub(crate) fn fixed_constant(&mut self, constant: &AConst) -> Result<Expr, SqlError> {
        match &constant.val {
            None => Ok(Expr::null(Type::UNKNOWN)),
            Some(a_const::Val::Ival(value)) => Ok(Expr::constant(Value::Int4(value.ival), Type::INT4)),
            Some(a_const::Val::Boolval(value)) => Ok(Expr::boolean(value.boolval)),
            Some(a_const::Val::Sval(value)) => {
                self.texts.push((value.sval.clone(), constant.location));
                Ok(Expr::unknown(&value.sval))
            }
            Some(a_const::Val::Fval(value)) => match parse_integer(&value.fval, "bigint") {
                Ok(number) => Ok(match i32::try_from(number) {
                    Ok(small) => Expr::constant(Value::Int4(small), Type::INT4),
                    Err(_) => Expr::constant(Value::Int8(number), Type::INT8),
                }),
                Err(_) => functions::cast(Expr::unknown(&value.fval), Type::NUMERIC, CastContext::Explicit)
                    .map_err(|error| error.at(self.position(constant.location))),
            },
            Some(a_const::Val::Bsval(_)) => Err(self.unsupported("a bit string", constant.location)),
        }
    }

    /// The parameter that replaces a constant; None unless the constant is a literal of the text on
    /// whose value nothing depends.
    ///
    /// The value is compared too. The parser joins strings across lines and folds signs, so a
    /// constant may differ from the literal at its place.
    fn lift_constant(&mut self, constant: &AConst) -> Option<Expr> {
        if !self.lift {
            return None;
        }
        let start = u32::try_from(constant.location).ok()?;
        let index = self.literals().binary_search_by_key(&start, |literal| literal.start).ok()?;
        let literal = self.literals()[index];
        let value = literal.value(self.request.text)?;
        let (same, type_) = match (&constant.val, literal.class) {
            (Some(a_const::Val::Ival(parsed)), LiteralClass::Int4) => {
                (i64::from(parsed.ival) == literal.number, Type::INT4)
            }
            (Some(a_const::Val::Fval(parsed)), LiteralClass::Int4) => {
                (parsed.fval.parse() == Ok(literal.number), Type::INT4)
            }
            (Some(a_const::Val::Fval(parsed)), LiteralClass::Int8) => {
                (parsed.fval.parse() == Ok(literal.number), Type::INT8)
            }
            (Some(a_const::Val::Fval(parsed)), LiteralClass::Decimal) => {
                (parsed.fval == value, Type::NUMERIC)
            }
            (
                Some(a_const::Val::Sval(parsed)),
                LiteralClass::String | LiteralClass::Escape | LiteralClass::Dollar,
            ) => (parsed.sval == value, Type::UNKNOWN),
            _ => return None,
        };
        if !same || self.refused.contains(&index) {
            return None;
        }
        if self.claimed[index].is_some() {
            // The binder has met this literal before (BETWEEN SYMMETRIC). Each place may need
            // another type, so the statement is bound again with the literal as a constant.
            self.refused.push(index);
            return None;
        }
        self.claimed[index] = Some(type_);
        Some(Expr::Param { index: (self.first_literal + index) as u32, type_ })
    }

    /// The value of a parameter in the run that the plan is for; `None` if it is not known.
    pub(crate) fn peek(&self, parameter: u32) -> Option<Value> {
        let parameter = parameter as usize;
        if let Some(values) = self.request.values {
            return values.get(parameter).cloned();
        }
        let literal = parameter.checked_sub(self.first_literal)?;
        let (literal, type_) = (self.literals().get(literal)?, (*self.claimed.get(literal)?)?);
        match (literal.class, type_.oid) {
            (LiteralClass::Int4, oid::INT4) => Some(Value::Int4(literal.number as i32)),
            (LiteralClass::Int4 | LiteralClass::Int8, oid::INT8) => Some(Value::Int8(literal.number)),
            _ => {
                let shown = literal.value(self.request.text).filter(|shown| shown.len() <= LONGEST_PEEKED)?;
                if matches!(type_.oid, oid::UNKNOWN | oid::TEXT) {
                    return Some(Value::Text(shown.into()));
                }
                let arena = bumpalo::Bump::new();
                let value = values::text::parse(&shown, type_, &NoSession::default(), &arena).ok()?;
                value.to_value().ok()
            }
        }
    }

    /// Raises 42601 for a parameter where PostgreSQL's grammar wants a constant. The parser library
    /// accepts one there.
    pub(crate) fn refuse_parameter(&self, node: Option<&Node>) -> Result<(), SqlError> {
        let Some(NodeEnum::ParamRef(reference)) = node.and_then(|node| node.node.as_ref()) else {
            return Ok(());
        };
        let message = format!("syntax error at or near \"${}\"", reference.number);
        Err(self.error(SqlState::SYNTAX_ERROR, message, reference.location))
    }

    /// Binds `$n`.
    pub(crate) fn parameter(&mut self, reference: &ParamRef) -> Result<Expr, SqlError> {
        let number = reference.number;
        if self.bare || !(1..=MAX_PARAMETERS).contains(&number) {
            return Err(self.error(
                SqlState::UNDEFINED_PARAMETER,
                format!("there is no parameter ${number}"),
                reference.location,
            ));
        }
        let index = (number - 1) as usize;
        if self.parameters.len() <= index {
            self.parameters.resize(index + 1, Type::UNKNOWN);
        }
        Ok(Expr::Param { index: index as u32, type_: self.parameters[index] })
    }

    /// Records the types that a new expression gives parameters, and gives an error its position.
    pub(crate) fn built(&mut self, built: Result<Expr, SqlError>, location: i32) -> Result<Expr, SqlError> {
        match built {
            Ok(expr) => {
                if self.open_parameters() {
                    self.note_parameters(&expr);
                }
                Ok(expr)
            }
            Err(error) => {
                let position = self.position(self.text_in(&error).unwrap_or(location));
                Err(error.at(position))
            }
        }
    }

    /// The location of the string whose contents an error quotes.
    pub(crate) fn text_in(&self, error: &SqlError) -> Option<i32> {
        if !error.code.as_str().starts_with("22") {
            return None;
        }
        let quoted = |text: &str| error.message.contains(&format!("\"{text}\""));
        self.texts.iter().rev().find(|(text, _)| quoted(text)).map(|(_, location)| *location)
    }

    /// Whether the type of some parameter is not inferred yet.
    fn open_parameters(&self) -> bool {
        self.parameters.iter().chain(self.claimed.iter().flatten()).any(|type_| type_.oid == oid::UNKNOWN)
    }
}
