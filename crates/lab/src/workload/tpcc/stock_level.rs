//! Stock-Level (2.8): counts the items of the last 20 orders of the terminal's district whose stock
//! is low.

use super::statements::Sql;
use super::step::{Home, Next, Transaction};
use crate::client::{Params, Random, Reply};

#[derive(Debug, Clone, Copy)]
pub(super) struct StockLevel {
    warehouse: i64,
    district: i64,
    threshold: i64,
    at: At,
}

#[derive(Debug, Clone, Copy)]
enum At {
    Order,
    Count,
    Over,
}

impl StockLevel {
    /// Draws the inputs (2.8.1).
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let threshold = random.between(10, 20);
        Self { warehouse: home.warehouse, district: home.district, threshold, at: At::Order }
    }
}

impl Transaction for StockLevel {
    /// The steps of 2.8.2.2.
    fn next(&mut self, params: &mut Params, reply: &Reply) -> Result<Next, &'static str> {
        let (warehouse, district) = (self.warehouse, self.district);
        let (at, sql) = match self.at {
            At::Order => {
                params.ints(&[warehouse, district]);
                (At::Count, Sql::OrderNumber)
            }
            At::Count => {
                let next = reply.int(0, 0).ok_or("a district")?;
                params.ints(&[warehouse, district, next, next - 20, warehouse, self.threshold]);
                (At::Over, Sql::LowStock)
            }
            At::Over => return Ok(Next::Commit),
        };
        self.at = at;
        Ok(Next::Run(sql))
    }
}
