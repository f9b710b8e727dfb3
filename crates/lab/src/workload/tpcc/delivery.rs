//! Delivery (2.7): delivers the oldest new order of each district, all ten in one transaction, as
//! 2.7.4.2 permits.
//!
//! Reads follow the writes of the same rows: a snapshot may be older than the order, but a
//! transaction always sees its own writes.

use super::statements::Sql;
use super::step::{Home, Next, Transaction};
use super::{DISTRICTS, money};
use crate::client::{Params, Random, Reply};

#[derive(Debug, Clone, Copy)]
pub(super) struct Delivery {
    warehouse: i64,
    carrier: i64,
    at: At,
    district: i64,
    order: i64,
    customer: i64,
}

#[derive(Debug, Clone, Copy)]
enum At {
    Oldest,
    Delete,
    Order,
    Customer,
    Lines,
    Amount,
    Pay,
}

impl Delivery {
    /// Draws the inputs (2.7.1).
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let carrier = random.between(1, 10);
        Self { warehouse: home.warehouse, carrier, at: At::Oldest, district: 0, order: 0, customer: 0 }
    }

    fn next_district(&mut self, params: &mut Params) -> Next {
        if self.district == DISTRICTS {
            return Next::Commit;
        }
        self.district += 1;
        params.ints(&[self.warehouse, self.district]);
        self.at = At::Delete;
        Next::Run(Sql::OldestNewOrder)
    }
}

impl Transaction for Delivery {
    /// The steps of 2.7.4.2.
    fn next(&mut self, params: &mut Params, reply: &Reply) -> Result<Next, &'static str> {
        let (at, sql) = match self.at {
            At::Oldest => return Ok(self.next_district(params)),
            At::Delete => match reply.int(0, 0) {
                Some(order) => {
                    self.order = order;
                    (At::Order, Sql::DeleteNewOrder)
                }
                // This district has no undelivered orders.
                None => return Ok(self.next_district(params)),
            },
            At::Order => {
                params.int(self.carrier);
                (At::Customer, Sql::DeliverOrder)
            }
            At::Customer => (At::Lines, Sql::OrderCustomer),
            At::Lines => {
                self.customer = reply.int(0, 0).ok_or("a new order")?;
                (At::Amount, Sql::DeliverLines)
            }
            At::Amount => (At::Pay, Sql::OrderAmount),
            At::Pay => {
                money::push(params, money::cents(reply.text(0, 0)).ok_or("the lines of an order")?);
                (At::Oldest, Sql::DeliverCustomer)
            }
        };
        let last = if sql == Sql::DeliverCustomer { self.customer } else { self.order };
        params.ints(&[self.warehouse, self.district, last]);
        self.at = at;
        Ok(Next::Run(sql))
    }
}
