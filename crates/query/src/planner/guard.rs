//! Guards: the rows for which a subquery must run.
//!
//! CASE, COALESCE, AND and OR do not evaluate all their parts. A subquery in a part that is not
//! reached must not run, for it may fail. A subquery's result is computed into a register before
//! the expression that reads it. The guard is true for the rows in which that evaluation reaches
//! the register. What must hold:
//!
//! 1. One pass over the expressions finds the guards of all their subqueries. The conditions on the
//!    way to a place form a tree. The first guard that needs a way of several conditions stores its
//!    truth in a flag; guards further along the way read the flag. So 1,000 parts in a row have
//!    2,000 conditions in all their guards together.
//! 2. A guard reads only results of subqueries that are read before its own. So they are computed
//!    before the guard, and no two guards wait for each other.

use runtime::hash::HashMap;

use crate::plan::{Guard, Reg};
use crate::registers::{self, Registers};
use expressions::expr::{Expr, Shared};
use expressions::function::Volatility;
use values::error::SqlError;
use values::types::Type;

/// The registers for which `wanted` is true, each with its guard, in the order in which the
/// expressions first read them. A guard of None: the register is always read, or its reads cannot
/// be foreseen.
///
/// `operands`: registers that are read before a wanted register wherever it is read. `flag` assigns
/// registers for flags.
///
/// # Errors
/// The interrupt of a stopped statement, or of one without memory for copies of conditions.
pub(super) fn of<'e, 'o>(
    exprs: impl IntoIterator<Item = &'e Expr>,
    wanted: impl Fn(Reg) -> bool,
    operands: impl Fn(Reg) -> Option<&'o Registers>,
    flag: impl FnMut() -> Reg,
) -> Result<Vec<(Reg, Option<Guard>)>, SqlError> {
    let start = Step { before: START, condition: Condition::None };
    let (ways, order) = (HashMap::default(), Vec::new());
    let mut places = Places { wanted, operands, steps: vec![start], ways, order, around: None };
    exprs.into_iter().for_each(|expr| places.collect(expr, START));
    let Places { wanted, steps, ways, order, .. } = places;
    let known = HashMap::from_iter([(START, KnownWay { flag: None, whole: true })]);
    let mut guards = Guards { wanted, flag, steps, known, computed: Registers::default() };
    let guarded = |register| {
        let guard = guards.guard(&ways[&register])?;
        guards.computed.insert(register);
        Ok((register, guard))
    };
    order.into_iter().map(guarded).collect()
}

/// The step with which all ways begin.
const START: usize = 0;
/// The most ways to a register that are kept apart. Beyond it, only their common part counts.
const MOST_WAYS: usize = 4;

/// A condition on the way to a place, after the conditions before it.
#[derive(Clone, Copy)]
struct Step<'e> {
    before: usize,
    condition: Condition<'e>,
}

/// An expression, and the shared operands it may read.
#[derive(Clone, Copy)]
struct Within<'e>(&'e Expr, Option<&'e Shared>);

/// A test of an expression.
#[derive(Clone, Copy)]
enum Condition<'e> {
    None,
    True(Within<'e>),
    IsNot(Within<'e>, bool),
    Null(Within<'e>),
}

impl Condition<'_> {
    /// The condition as an expression that is true or false, with copies of the shared operands.
    /// None: it is always true.
    fn test(self) -> Result<Option<Expr>, SqlError> {
        let (Within(part, shared), expected, negated) = match self {
            Condition::None => return Ok(None),
            Condition::True(part) => (part, Some(true), false),
            Condition::IsNot(part, value) => (part, Some(value), true),
            Condition::Null(part) => (part, None, false),
        };
        let input = Box::new(match shared {
            None => part.copied()?,
            Some(shared) => shared.closed(part)?,
        });
        Ok(Some(match self {
            Condition::Null(_) => Expr::NullTest { input, negated },
            _ => Expr::BoolTest { input, expected, negated },
        }))
    }
}

/// A condition that a guard can evaluate, or the reason why it cannot.
enum Tested {
    Known(Option<Expr>),
    /// Its value may differ when the expression is evaluated.
    Volatile,
    /// It reads a result that is computed later.
    Later,
}

/// The places that read wanted registers.
struct Places<'e, W, O> {
    wanted: W,
    operands: O,
    /// The tree of conditions. Each has a higher number than its predecessor.
    steps: Vec<Step<'e>>,
    /// The last step of each way to a register. No way is the beginning of another.
    ways: HashMap<Reg, Vec<usize>>,
    order: Vec<Reg>,
    /// The shared operands of the expression being visited.
    around: Option<&'e Shared>,
}

impl<'e, 'o, W: Fn(Reg) -> bool, O: Fn(Reg) -> Option<&'o Registers>> Places<'e, W, O> {
    fn collect(&mut self, expr: &'e Expr, mut way: usize) {
        match expr {
            Expr::Column { register, .. } => self.read(*register, way),
            Expr::And(parts) => self.in_turn(parts, way, |part| Condition::IsNot(part, false)),
            Expr::Or(parts) => self.in_turn(parts, way, |part| Condition::IsNot(part, true)),
            Expr::Coalesce(parts, _) => self.in_turn(parts, way, Condition::Null),
            // Operands are computed before the body.
            Expr::Shared(shared) => {
                shared.operands.iter().for_each(|operand| self.collect(operand, way));
                let around = self.around.replace(shared);
                self.collect(&shared.body, way);
                self.around = around;
            }
            Expr::Case(case) => {
                for (condition, result) in &case.branches {
                    self.collect(condition, way);
                    let within = Within(condition, self.around);
                    let chosen = self.step(way, Condition::True(within));
                    self.collect(result, chosen);
                    way = self.step(way, Condition::IsNot(within, true));
                }
                self.collect(&case.otherwise, way);
            }
            _ => expr.for_each_child(&mut |child| self.collect(child, way)),
        }
    }

    /// Visits parts of which each is reached if those before it do not decide.
    fn in_turn(
        &mut self,
        parts: &'e [Expr],
        mut way: usize,
        undecided: impl Fn(Within<'e>) -> Condition<'e>,
    ) {
        for part in parts {
            self.collect(part, way);
            way = self.step(way, undecided(Within(part, self.around)));
        }
    }

    fn step(&mut self, before: usize, condition: Condition<'e>) -> usize {
        self.steps.push(Step { before, condition });
        self.steps.len() - 1
    }

    /// Records a place that reads a register.
    fn read(&mut self, register: Reg, way: usize) {
        if let Some(operands) = (self.operands)(register) {
            let mut operands: Vec<Reg> = operands.iter().copied().collect();
            operands.sort_unstable();
            operands.into_iter().for_each(|operand| self.read(operand, way));
        }
        if (self.wanted)(register) {
            self.note(register, way);
        }
    }

    /// Records a way to a register, unless it continues a known one and so adds nothing.
    fn note(&mut self, register: Reg, way: usize) {
        let steps = &self.steps;
        let ways = self.ways.entry(register).or_insert_with(|| {
            self.order.push(register);
            Vec::new()
        });
        if !ways.iter().any(|known| begins_with(steps, way, *known)) {
            ways.retain(|known| !begins_with(steps, *known, way));
            ways.push(way);
        }
        if ways.len() > MOST_WAYS {
            let common = ways.iter().copied().reduce(|one, other| common(steps, one, other));
            ways.clear();
            ways.extend(common);
        }
    }
}

/// The last common step of two ways.
fn common(steps: &[Step<'_>], mut one: usize, mut other: usize) -> usize {
    while one != other {
        let later = if one > other { &mut one } else { &mut other };
        *later = steps[*later].before;
    }
    one
}

/// Whether a way passes a step.
fn begins_with(steps: &[Step<'_>], mut way: usize, step: usize) -> bool {
    while way > step && step != START {
        way = steps[way].before;
    }
    way == step || step == START
}

/// How much of the way to a step guards know before an expression is evaluated.
#[derive(Clone, Copy)]
struct KnownWay {
    /// The flag for the known part of the way. None: that part is always open.
    flag: Option<Reg>,
    /// Whether the whole way up to the step is known. A condition after an unknown one must not be
    /// evaluated, since it may fail.
    whole: bool,
}

/// The guards found so far.
struct Guards<'e, W, F> {
    wanted: W,
    flag: F,
    steps: Vec<Step<'e>>,
    /// The known ways, by their last step.
    known: HashMap<usize, KnownWay>,
    /// The subqueries whose results guards may read.
    computed: Registers,
}

impl<W: Fn(Reg) -> bool, F: FnMut() -> Reg> Guards<'_, W, F> {
    /// The guard of a register that is read at the ends of these ways.
    fn guard(&mut self, ways: &[usize]) -> Result<Option<Guard>, SqlError> {
        let mut flags = Vec::new();
        let mut open = Vec::with_capacity(ways.len());
        let mut always = false;
        for end in ways {
            let Step { before, condition } = self.steps[*end];
            let way = self.way(before, &mut flags)?;
            let mut conditions: Vec<Expr> = way.flag.map(flag_column).into_iter().collect();
            if way.whole
                && let Tested::Known(test) = self.test(condition)?
            {
                conditions.extend(test);
            }
            always |= conditions.is_empty();
            open.push(conditions);
        }
        let conditions = match (always, open.len()) {
            (true, _) => Vec::new(),
            (false, 1) => open.remove(0),
            _ => vec![Expr::Or(open.into_iter().map(Expr::and).collect())],
        };
        Ok((!conditions.is_empty() || !flags.is_empty()).then_some(Guard { flags, conditions }))
    }

    /// Makes the way up to a step known. Adds new flags to `flags`.
    fn way(&mut self, end: usize, flags: &mut Vec<(Expr, Reg)>) -> Result<KnownWay, SqlError> {
        let (mut step, mut further) = (end, Vec::new());
        let mut known = loop {
            if let Some(known) = self.known.get(&step) {
                break *known;
            }
            further.push(self.steps[step].condition);
            step = self.steps[step].before;
        };
        let mut conditions: Vec<Expr> = known.flag.map(flag_column).into_iter().collect();
        let before = conditions.len();
        let mut complete = true;
        while let Some(condition) = further.pop().filter(|_| known.whole) {
            match self.test(condition)? {
                Tested::Known(test) => conditions.extend(test),
                Tested::Volatile => known.whole = false,
                Tested::Later => (known.whole, complete) = (false, false),
            }
        }
        if conditions.len() > before {
            let flag = (self.flag)();
            flags.push((Expr::and(conditions), flag));
            known.flag = Some(flag);
        }
        // Results that are computed later can make more of the way known.
        if complete {
            self.known.insert(end, known);
        }
        Ok(known)
    }

    /// A condition as guards can evaluate it.
    fn test(&self, condition: Condition<'_>) -> Result<Tested, SqlError> {
        let Some(test) = condition.test()? else { return Ok(Tested::Known(None)) };
        let later = |register: Reg| (self.wanted)(register) && !self.computed.contains(&register);
        if registers::reads(&test).into_iter().any(later) {
            return Ok(Tested::Later);
        }
        Ok(match test.volatility() {
            Volatility::Volatile => Tested::Volatile,
            _ => Tested::Known(Some(test)),
        })
    }
}

fn flag_column(flag: Reg) -> Expr {
    Expr::column(flag, Type::BOOL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expressions::expr::Case;

    /// Registers from here on are flags.
    const FLAGS: Reg = 100_000;

    fn guards(exprs: &[Expr], wanted: impl Fn(Reg) -> bool) -> Vec<(Reg, Option<Guard>)> {
        let mut flag = FLAGS;
        let guards = of(
            exprs,
            wanted,
            |_| None,
            || {
                flag += 1;
                flag - 1
            },
        );
        guards.unwrap()
    }

    fn int(register: Reg) -> Expr {
        Expr::column(register, Type::INT4)
    }

    fn bool(register: Reg) -> Expr {
        Expr::column(register, Type::BOOL)
    }

    fn parts(guard: &Guard) -> usize {
        let mut parts = 0;
        let flags = guard.flags.iter().map(|(expr, _)| expr);
        flags.chain(&guard.conditions).for_each(|expr| expr.walk(&mut |_| parts += 1));
        parts
    }

    /// Evaluates a guard over registers that are true, false or NULL.
    fn holds(guard: Option<&Guard>, file: &mut HashMap<Reg, Option<bool>>) -> bool {
        let Some(guard) = guard else { return true };
        for (expr, flag) in &guard.flags {
            let open = evaluate(expr, file, &mut Vec::new()) == Some(true);
            file.insert(*flag, Some(open));
        }
        guard.conditions.iter().all(|condition| evaluate(condition, file, &mut Vec::new()) == Some(true))
    }

    #[test]
    fn thousands_of_parts_have_guards_of_a_few_parts_each() {
        const MANY: Reg = 5_000;
        let coalesce = Expr::Coalesce((0..MANY).map(int).collect(), Type::INT4);
        let branches = (0..MANY).map(|i| (bool(MANY + i), int(i))).collect();
        let case = Expr::Case(Box::new(Case { branches, otherwise: int(2 * MANY), type_: Type::INT4 }));
        let or = Expr::Or((0..MANY).map(bool).collect());
        for expr in [coalesce, case, or] {
            let guards = guards(&[expr], |register| register < MANY);
            assert_eq!(guards.len(), MANY as usize);
            assert!(guards.iter().flat_map(|(_, guard)| guard).all(|guard| parts(guard) <= 10));
        }
    }

    #[test]
    fn a_guard_of_many_places_tests_their_common_way() {
        // (a, b) IN 5,000 pairs, after a condition.
        let equal = |register| Expr::BoolTest {
            input: Box::new(bool(register)),
            expected: Some(true),
            negated: false,
        };
        let pairs = (0..5_000).map(|pair| Expr::And(vec![equal(10 + pair), equal(1)])).collect();
        let case = Case { branches: vec![(bool(2), Expr::Or(pairs))], otherwise: bool(3), type_: Type::BOOL };
        let guards = guards(&[Expr::Case(Box::new(case))], |register| register == 1);
        let [(1, Some(guard))] = &guards[..] else { panic!("{guards:?}") };
        assert!(guard.flags.is_empty());
        let [condition] = &guard.conditions[..] else { panic!("{guard:?}") };
        assert_eq!(registers::reads(condition), Registers::from_iter([2]));
    }

    #[test]
    fn what_is_read_in_any_case_has_no_guard_and_shorter_ways_hold_longer_ones() {
        let first = Expr::Coalesce(vec![int(0), int(1)], Type::INT4);
        let guards = guards(&[first, int(1)], |_| true);
        assert!(guards.iter().all(|(_, guard)| guard.is_none()));
    }

    #[test]
    fn an_operand_is_wanted_with_its_reader_and_before_it() {
        // The results 1 and 2 are read with that of 0, and 3 with that of 2.
        let operands =
            HashMap::from_iter([(0, Registers::from_iter([1, 2])), (2, Registers::from_iter([3]))]);
        let case = Case { branches: vec![(bool(9), bool(0))], otherwise: bool(3), type_: Type::BOOL };
        let exprs = [Expr::Case(Box::new(case))];
        let found =
            of(&exprs, |register| register < 9, |register| operands.get(&register), || FLAGS).unwrap();
        let order: Vec<Reg> = found.iter().map(|(register, _)| *register).collect();
        assert_eq!(order, [1, 3, 2, 0]);
        for (register, guard) in &found {
            // The other branch reads 3, too.
            let parts: Vec<usize> = guard
                .iter()
                .flat_map(|guard| &guard.conditions)
                .map(|part| registers::reads(part).len())
                .collect();
            assert_eq!(parts, [1], "register {register}");
            let is_either =
                guard.iter().flat_map(|guard| &guard.conditions).any(|part| matches!(part, Expr::Or(_)));
            assert_eq!(is_either, *register == 3);
        }
    }

    #[test]
    fn a_guard_reads_no_result_that_is_read_later() {
        // Each reads the other's result on one of its ways.
        let either = |a, b| Expr::Coalesce(vec![bool(a), bool(b)], Type::BOOL);
        let case = |when, then| {
            Expr::Case(Box::new(Case {
                branches: vec![(bool(when), then)],
                otherwise: Expr::boolean(true),
                type_: Type::BOOL,
            }))
        };
        let exprs = [case(8, either(0, 1)), case(9, either(1, 0))];
        let guards = guards(&exprs, |register| register < 2);
        let mut computed = Vec::new();
        for (register, guard) in &guards {
            if let Some(guard) = guard {
                let flags = guard.flags.iter().map(|(expr, _)| expr);
                for read in flags.chain(&guard.conditions).flat_map(registers::reads) {
                    assert!(read >= 8 || computed.contains(&read));
                }
            }
            computed.push(*register);
        }
    }

    /// Tries every outcome of the conditions: the guards agree with the evaluation's reads.
    #[test]
    fn guards_are_true_where_evaluation_reads_the_register() {
        let nested = Expr::Or(vec![
            Expr::And(vec![bool(0), bool(1), Expr::Coalesce(vec![bool(2), bool(3)], Type::BOOL)]),
            Expr::Case(Box::new(Case {
                branches: vec![(bool(4), bool(5)), (Expr::Or(vec![bool(1), bool(6)]), bool(0))],
                otherwise: Expr::And(vec![bool(3), bool(7)]),
                type_: Type::BOOL,
            })),
        ]);
        let guards = guards(std::slice::from_ref(&nested), |_| true);
        assert_eq!(guards.len(), 8);
        for case in 0..3_u32.pow(8) {
            let turn =
                |register: Reg| [None, Some(false), Some(true)][(case / 3_u32.pow(register) % 3) as usize];
            let mut file: HashMap<Reg, Option<bool>> =
                (0..8).map(|register| (register, turn(register))).collect();
            let mut read = Vec::new();
            evaluate(&nested, &file, &mut read);
            for (register, guard) in &guards {
                let wanted = holds(guard.as_ref(), &mut file);
                // The executor writes NULL where a subquery does not run.
                if !wanted {
                    file.insert(*register, None);
                }
                assert!(wanted || !read.contains(register), "register {register} of case {case}");
                // A register that only one place reads runs for no other row.
                if ![0, 1, 3].contains(register) {
                    assert_eq!(wanted, read.contains(register), "register {register} of case {case}");
                }
            }
        }
    }

    /// Evaluates as [`expressions::expr`] does, and records the registers it reads.
    fn evaluate(expr: &Expr, file: &HashMap<Reg, Option<bool>>, read: &mut Vec<Reg>) -> Option<bool> {
        match expr {
            Expr::Const(..) => Some(true),
            Expr::Column { register, .. } => {
                read.push(*register);
                file[register]
            }
            Expr::And(parts) | Expr::Or(parts) => {
                let decides = matches!(expr, Expr::Or(_));
                let mut result = Some(!decides);
                for part in parts {
                    match evaluate(part, file, read) {
                        Some(value) if value == decides => return Some(decides),
                        Some(_) => {}
                        None => result = None,
                    }
                }
                result
            }
            Expr::Coalesce(parts, _) => parts.iter().find_map(|part| evaluate(part, file, read)),
            Expr::Case(case) => {
                for (condition, result) in &case.branches {
                    if evaluate(condition, file, read) == Some(true) {
                        return evaluate(result, file, read);
                    }
                }
                evaluate(&case.otherwise, file, read)
            }
            Expr::NullTest { input, .. } => Some(evaluate(input, file, read).is_none()),
            Expr::BoolTest { input, expected, negated } => {
                Some((evaluate(input, file, read) == *expected) != *negated)
            }
            other => panic!("{other:?}"),
        }
    }
}
