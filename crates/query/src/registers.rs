//! Sets of registers, and the registers that expressions read.

use std::iter::{Chain, Flatten};
use std::{option, slice};

use runtime::hash::HashSet;
use smallvec::SmallVec;

use expressions::expr::Expr;

use crate::plan::walk;
use crate::plan::{Reg, SubqueryKind};

/// So many registers lie in the set itself.
const FEW: usize = 12;

/// A set of registers. Most sets of a planner have a few.
#[derive(Clone, Debug)]
pub(crate) struct Registers(Members);

type Few = SmallVec<[Reg; FEW]>;
type Many = HashSet<Reg>;

#[derive(Clone, Debug)]
enum Members {
    /// At most [`FEW`], each once.
    Few(Few),
    Many(Many),
}

impl Default for Registers {
    fn default() -> Registers {
        Registers(Members::Few(SmallVec::new()))
    }
}

impl Registers {
    /// Adds a register. Returns whether it is new.
    pub(crate) fn insert(&mut self, register: Reg) -> bool {
        match &mut self.0 {
            Members::Many(many) => many.insert(register),
            Members::Few(few) if few.contains(&register) => false,
            Members::Few(few) if few.len() < FEW => {
                few.push(register);
                true
            }
            Members::Few(few) => {
                self.0 = Members::Many(few.iter().copied().chain([register]).collect());
                true
            }
        }
    }

    /// Whether a register is there.
    pub(crate) fn contains(&self, register: &Reg) -> bool {
        match &self.0 {
            Members::Few(few) => few.contains(register),
            Members::Many(many) => many.contains(register),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Members::Few(few) => few.len(),
            Members::Many(many) => many.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The registers, in no order.
    pub(crate) fn iter(&self) -> Chain<slice::Iter<'_, Reg>, Flatten<option::IntoIter<&Many>>> {
        let (few, many) = match &self.0 {
            Members::Few(few) => (few.as_slice(), None),
            Members::Many(many) => (&[][..], Some(many)),
        };
        few.iter().chain(many.into_iter().flatten())
    }

    /// Keeps those for which `keep` is true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Reg) -> bool) {
        match &mut self.0 {
            Members::Few(few) => few.retain(|register| keep(register)),
            Members::Many(many) => many.retain(keep),
        }
    }

    /// Those of this set that are not in another.
    pub(crate) fn difference<'s>(&'s self, other: &'s Registers) -> impl Iterator<Item = &'s Reg> {
        self.iter().filter(|register| !other.contains(register))
    }

    /// Those of this set that are in another.
    pub(crate) fn intersection<'s>(&'s self, other: &'s Registers) -> impl Iterator<Item = &'s Reg> {
        self.iter().filter(|register| other.contains(register))
    }

    /// Those of either set, each once.
    pub(crate) fn union<'s>(&'s self, other: &'s Registers) -> impl Iterator<Item = &'s Reg> {
        self.iter().chain(other.difference(self))
    }

    pub(crate) fn is_subset(&self, other: &Registers) -> bool {
        self.len() <= other.len() && self.iter().all(|register| other.contains(register))
    }

    pub(crate) fn is_disjoint(&self, other: &Registers) -> bool {
        let (less, more) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        less.iter().all(|register| !more.contains(register))
    }
}

impl PartialEq for Registers {
    fn eq(&self, other: &Registers) -> bool {
        self.len() == other.len() && self.is_subset(other)
    }
}

impl Extend<Reg> for Registers {
    fn extend<I: IntoIterator<Item = Reg>>(&mut self, registers: I) {
        for register in registers {
            self.insert(register);
        }
    }
}

impl<'r> Extend<&'r Reg> for Registers {
    fn extend<I: IntoIterator<Item = &'r Reg>>(&mut self, registers: I) {
        self.extend(registers.into_iter().copied());
    }
}

impl FromIterator<Reg> for Registers {
    fn from_iter<I: IntoIterator<Item = Reg>>(registers: I) -> Registers {
        let mut set = Registers::default();
        set.extend(registers);
        set
    }
}

impl IntoIterator for Registers {
    type Item = Reg;
    type IntoIter = Chain<smallvec::IntoIter<[Reg; FEW]>, Flatten<option::IntoIter<Many>>>;

    fn into_iter(self) -> Self::IntoIter {
        let (few, many) = match self.0 {
            Members::Few(few) => (few, None),
            Members::Many(many) => (Few::new(), Some(many)),
        };
        few.into_iter().chain(many.into_iter().flatten())
    }
}

impl<'r> IntoIterator for &'r Registers {
    type Item = &'r Reg;
    type IntoIter = Chain<slice::Iter<'r, Reg>, Flatten<option::IntoIter<&'r Many>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Adds the registers that an expression reads.
pub(crate) fn of_expr(expr: &Expr, into: &mut Registers) {
    expr.walk(&mut |part| {
        if let Expr::Column { register, .. } = part {
            into.insert(*register);
        }
    });
}

/// The registers that an expression reads.
pub(crate) fn reads(expr: &Expr) -> Registers {
    let mut registers = Registers::default();
    of_expr(expr, &mut registers);
    registers
}

/// Adds the registers that turning a subquery's rows into one result reads.
pub(crate) fn kind_reads(kind: &SubqueryKind, into: &mut Registers) {
    walk::kind_exprs(kind, &mut |expr| of_expr(expr, into));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_registers_are_sets() {
        for (count, others) in [(0, 3), (3, 0), (5, 7), (12, 13), (13, 12), (40, 40), (200, 5)] {
            let set: Registers = (0..count).chain(0..count).collect();
            let other = Registers::from_iter(others / 2..others / 2 + others);
            let model: std::collections::BTreeSet<Reg> = (0..count).collect();
            let second: std::collections::BTreeSet<Reg> = (others / 2..others / 2 + others).collect();
            let sorted = |found: &mut dyn Iterator<Item = &Reg>| {
                let mut found: Vec<Reg> = found.copied().collect();
                found.sort_unstable();
                found
            };
            assert_eq!(sorted(&mut set.iter()), model.iter().copied().collect::<Vec<_>>());
            assert_eq!(sorted(&mut set.union(&other)), model.union(&second).copied().collect::<Vec<_>>());
            assert_eq!(
                sorted(&mut set.difference(&other)),
                model.difference(&second).copied().collect::<Vec<_>>()
            );
            assert_eq!(
                sorted(&mut set.intersection(&other)),
                model.intersection(&second).copied().collect::<Vec<_>>()
            );
            assert_eq!(set.is_subset(&other), model.is_subset(&second), "{count} {others}");
            assert_eq!(set.is_disjoint(&other), model.is_disjoint(&second), "{count} {others}");
            assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            assert!((0..300).all(|register| set.contains(&register) == model.contains(&register)));
            let mut odd = set.clone();
            odd.retain(|register| register % 2 == 1);
            assert_eq!(odd, Registers::from_iter((0..count).filter(|register| register % 2 == 1)));
            let mut grown = odd;
            assert!((0..count).all(|register| grown.insert(register) == (register % 2 == 0)));
            assert_eq!(grown, set);
            let mut owned: Vec<Reg> = set.into_iter().collect();
            owned.sort_unstable();
            assert!(owned.iter().eq(model.iter()));
        }
    }
}
