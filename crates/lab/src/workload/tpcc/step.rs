//! What the transactions have in common: where they are run from, what they do next, and whom two of them are about.

use super::random;
use super::statements::Sql;
use crate::client::{Random, Reply, Step};

/// Where a terminal stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Home {
    pub(super) warehouse: i64,
    /// Of its stock levels (2.8.1.1).
    pub(super) district: i64,
    pub(super) warehouses: i64,
}

impl Home {
    /// Another warehouse than its own, where there is one.
    pub(super) fn other(&self, random: &mut Random) -> i64 {
        if self.warehouses == 1 {
            return self.warehouse;
        }
        let drawn = random.between(1, self.warehouses - 1);
        drawn + i64::from(drawn >= self.warehouse)
    }
}

/// What a transaction does next.
pub(super) enum Next {
    /// A step of its own.
    Step(Step),
    /// It is over.
    Over,
}

impl From<Sql> for Next {
    fn from(sql: Sql) -> Self {
        Self::Step(sql.run())
    }
}

impl Next {
    /// What a transaction needs is not there.
    pub(super) fn missing(what: &'static str) -> Self {
        Self::Step(Step::Abort(what.into()))
    }
}

/// Which customer a transaction is about (2.5.1.2, 2.6.1.2): in 60 of 100 cases one is asked for by last name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Who {
    Number(i64),
    Name(i64),
}

impl Who {
    pub(super) fn draw(random: &mut Random) -> Self {
        if random.between(1, 100) <= 60 {
            Self::Name(random::asked_name(random))
        } else {
            Self::Number(random::customer(random))
        }
    }
}

/// Of the customers with a name, sorted by first name, the one in the middle, rounded up (2.5.2.2).
pub(super) fn middle(reply: &Reply) -> Option<i64> {
    reply.int(reply.rows().checked_sub(1)? / 2, 0)
}
