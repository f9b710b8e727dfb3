//! Common parts of the transactions: the terminal's place, a transaction's next step, and the
//! customer that two of the transactions take.

use super::random;
use super::statements::Sql;
use crate::client::{Params, Random, Reply};

/// A terminal's place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Home {
    pub(super) warehouse: i64,
    /// The district of its stock levels (2.8.1.1).
    pub(super) district: i64,
    pub(super) warehouses: i64,
}

impl Home {
    /// A warehouse other than its own, if there is one.
    pub(super) fn other(&self, random: &mut Random) -> i64 {
        if self.warehouses == 1 {
            return self.warehouse;
        }
        let drawn = random.between(1, self.warehouses - 1);
        drawn + i64::from(drawn >= self.warehouse)
    }
}

/// A transaction's next step, after its BEGIN.
pub(super) enum Next {
    Run(Sql),
    Commit,
    /// The transaction ends, and changes nothing.
    RollBack,
}

pub(super) trait Transaction {
    /// The next step after its BEGIN. The error names the missing data.
    fn next(&mut self, params: &mut Params, reply: &Reply) -> Result<Next, &'static str>;
}

/// The customer of a transaction (2.5.1.2, 2.6.1.2): in 60 of 100 cases one by last name.
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

    /// Asks for the customers of a warehouse and district with this last name.
    pub(super) fn ask(name: i64, place: [i64; 2], params: &mut Params) -> Next {
        params.ints(&place);
        params.text(random::last_name(name).as_str());
        Next::Run(Sql::CustomersByName)
    }
}

/// The middle customer, rounded up, of those with a name, sorted by first name (2.5.2.2).
pub(super) fn middle(reply: &Reply) -> Result<i64, &'static str> {
    let middle = reply.rows().checked_sub(1).and_then(|last| reply.int(last / 2, 0));
    middle.ok_or("the customers of a name")
}
