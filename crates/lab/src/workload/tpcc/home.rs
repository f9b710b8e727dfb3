//! A terminal's place, and the customer that two of its transactions take.

use super::random;
use super::statements::Sql;
use crate::client::Random;
use crate::workload::talk::{Ended, Talk};

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

    /// The customer's number. For a name it is the middle customer, rounded up, of those of this
    /// warehouse and district with the name, sorted by first name (2.5.2.2).
    pub(super) async fn find(self, warehouse: i64, district: i64, talk: &Talk) -> Result<i64, Ended> {
        let name = match self {
            Self::Number(number) => return Ok(number),
            Self::Name(name) => name,
        };
        talk.run_with(Sql::CustomersByName, |params| {
            params.ints(&[warehouse, district]);
            params.text_by(|text| random::last_name(name, text));
        })
        .await?;
        let middle = talk.read(|reply| reply.int(reply.rows().checked_sub(1)? / 2, 0));
        middle.ok_or(Ended::Missing("the customers of a name"))
    }
}
