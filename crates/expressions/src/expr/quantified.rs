//! Comparisons of a value with each element of a list or an array.
//!
//! The second test of a long list in a run prepares it, if its elements read no row. Later tests
//! look their value up ([`crate::lists`]). Other lists are searched element by element.
//!
//! What must hold: a look-up gives the value and the errors of the search. So only `= ANY` and
//! `<> ALL` by the type's own equality look values up. A list with an element that fails, reads a
//! row or is not immutable is searched.

use super::eval::{call_function, fast_call};
use super::{Expr, Quantified, QuantifiedOver};
use crate::context::EvalContext;
use crate::function::{Comparison, Fast, Volatility};
use crate::lists::List;
use values::error::SqlError;
use values::memory;
use values::types::{ArrayRef, Datum};
use values::work::tick_part;

/// Shorter lists are searched.
const LEAST: usize = 9;

impl Quantified {
    pub(super) fn eval<'a>(&'a self, context: &mut EvalContext<'a, '_>) -> Result<Datum<'a>, SqlError> {
        let left = self.left.eval(context)?;
        match &self.right {
            QuantifiedOver::List(list) => {
                if list.len() >= LEAST
                    && let Some(value) = self.look_up(left, Elements::Of(list), context)?
                {
                    return Ok(value);
                }
                self.search_list(left, list, context)
            }
            QuantifiedOver::Array(array) => self.eval_over_array(left, array, context),
        }
    }

    fn eval_over_array<'a>(
        &'a self,
        left: Datum<'a>,
        expression: &'a Expr,
        context: &mut EvalContext<'a, '_>,
    ) -> Result<Datum<'a>, SqlError> {
        // An array that is computed need not be computed again once it is prepared.
        let stored = matches!(expression, Expr::Const(..) | Expr::Param { .. } | Expr::Column { .. });
        if !stored && let Some(value) = self.found(left, context)? {
            return Ok(value);
        }
        let Datum::Array(array) = expression.eval(context)? else { return Ok(Datum::Null) };
        if array.len() >= LEAST
            && !matches!(expression, Expr::Column { .. })
            && let Some(value) = self.look_up(left, Elements::In(expression, array), context)?
        {
            return Ok(value);
        }
        let mut unknown = false;
        for value in array.iter() {
            if let Some(decided) = self.step(left, value?, &mut unknown, context)? {
                return Ok(Datum::Bool(decided));
            }
        }
        Ok(if unknown { Datum::Null } else { Datum::Bool(self.all) })
    }

    fn search_list<'a>(
        &'a self,
        left: Datum<'a>,
        list: &'a [Expr],
        context: &mut EvalContext<'a, '_>,
    ) -> Result<Datum<'a>, SqlError> {
        let mut unknown = false;
        for item in list {
            tick_part(list.len())?;
            let value = item.eval(context)?;
            if let Some(decided) = self.step(left, value, &mut unknown, context)? {
                return Ok(Datum::Bool(decided));
            }
        }
        Ok(if unknown { Datum::Null } else { Datum::Bool(self.all) })
    }

    fn step<'a>(
        &self,
        left: Datum<'a>,
        right: Datum<'a>,
        unknown: &mut bool,
        context: &mut EvalContext<'a, '_>,
    ) -> Result<Option<bool>, SqlError> {
        let value = match self.function.fast {
            Some(fast) => fast_call(fast, self.function, left, right, context)?,
            None => call_function(self.function, &[left, right], context)?,
        };
        Ok(match value {
            Datum::Bool(value) if value != self.all => Some(value),
            Datum::Bool(_) => None,
            _ => {
                *unknown = true;
                None
            }
        })
    }

    /// The comparison's value by a look-up; None where the list must be searched.
    fn look_up<'a>(
        &'a self,
        left: Datum<'a>,
        elements: Elements<'a>,
        context: &mut EvalContext<'a, '_>,
    ) -> Result<Option<Datum<'a>>, SqlError> {
        let Some(lists) = context.lists else { return Ok(None) };
        let found = self.found(left, context)?;
        if found.is_some() || !lists.is_due(self.address()) {
            return Ok(found);
        }
        let list = if self.is_by_equality() { elements.prepare(context)? } else { None };
        lists.put(self.address(), list);
        self.found(left, context)
    }

    /// The comparison's value, if the list is prepared.
    fn found<'a>(
        &self,
        left: Datum<'a>,
        context: &EvalContext<'a, '_>,
    ) -> Result<Option<Datum<'a>>, SqlError> {
        let Some(lists) = context.lists else { return Ok(None) };
        Ok(lists.find(self.address(), left)?.map(|found| match found {
            Some(found) => Datum::Bool(found != self.all),
            None => Datum::Null,
        }))
    }

    fn is_by_equality(&self) -> bool {
        let operator = if self.all { Comparison::NotEqual } else { Comparison::Equal };
        self.function.fast == Some(Fast::Compare(operator))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The elements of the right side.
enum Elements<'a> {
    /// The values of these expressions.
    Of(&'a [Expr]),
    /// Those of an array, the value of this expression.
    In(&'a Expr, ArrayRef<'a>),
}

impl<'a> Elements<'a> {
    /// Prepares the list; None where it must be searched.
    fn prepare(self, context: &mut EvalContext<'a, '_>) -> Result<Option<List>, SqlError> {
        match self {
            Elements::Of(list) => {
                let values = list.iter().map(|item| {
                    tick_part(list.len())?;
                    if is_fixed(item) { item.eval(context).map(Some) } else { Ok(None) }
                });
                prepare(list.len(), values)
            }
            Elements::In(expression, _) if !is_fixed(expression) => Ok(None),
            Elements::In(_, array) => prepare(array.len(), array.iter().map(|value| value.map(Some))),
        }
    }
}

/// Prepares a list of these values. None, for a value that is not fixed, or an error ends it.
fn prepare<'a>(
    count: usize,
    values: impl Iterator<Item = Result<Option<Datum<'a>>, SqlError>>,
) -> Result<Option<List>, SqlError> {
    memory::ask(count.saturating_mul(size_of::<Datum<'_>>()))?;
    let (mut present, mut null) = (Vec::with_capacity(count), false);
    for value in values {
        match value {
            Ok(Some(Datum::Null)) => null = true,
            Ok(Some(value)) => present.push(value),
            Ok(None) => return Ok(None),
            Err(error) if error.code.is_stop() => return Err(error),
            Err(_) => return Ok(None),
        }
    }
    List::of(&present, null)
}

/// Whether the value is the same throughout a run.
fn is_fixed(element: &Expr) -> bool {
    element.is_row_free() && element.volatility() == Volatility::Immutable
}
