//! Delivery (2.7): of each district the oldest new order is delivered, all ten in one transaction, which 2.7.4.2 permits.
//!
//! Reads follow the writes of the same rows: where a transaction reads from a snapshot, that may be older than the order, but
//! its own writes are always seen.

use super::statements::Sql;
use super::step::{Home, Next};
use super::{DISTRICTS, money};
use crate::client::{Params, Random, Reply};

#[derive(Debug)]
pub(super) struct Delivery {
    warehouse: i64,
    carrier: i64,
    at: At,
    district: i64,
    order: i64,
    customer: i64,
}

#[derive(Debug, Clone, Copy, Default)]
enum At {
    #[default]
    Oldest,
    Delete,
    Order,
    Customer,
    Lines,
    Amount,
    Pay,
}

impl Delivery {
    /// 2.7.1.
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let carrier = random.between(1, 10);
        Self { warehouse: home.warehouse, carrier, at: At::default(), district: 0, order: 0, customer: 0 }
    }

    pub(super) fn begin_again(&mut self) {
        (self.at, self.district) = (At::default(), 0);
    }

    /// 2.7.4.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self.at {
            At::Oldest => self.next_district(params),
            At::Delete => match reply.int(0, 0) {
                Some(order) => {
                    self.order = order;
                    self.push_order(params);
                    self.at = At::Order;
                    Next::Run(Sql::DeleteNewOrder)
                }
                // All of this district are delivered.
                None => self.next_district(params),
            },
            At::Order => {
                params.int(self.carrier);
                self.push_order(params);
                self.at = At::Customer;
                Next::Run(Sql::DeliverOrder)
            }
            At::Customer => {
                self.push_order(params);
                self.at = At::Lines;
                Next::Run(Sql::OrderCustomer)
            }
            At::Lines => {
                let Some(customer) = reply.int(0, 0) else {
                    return Next::Missing("a new order of TPC-C's data has no order; load it again");
                };
                self.customer = customer;
                self.push_order(params);
                self.at = At::Amount;
                Next::Run(Sql::DeliverLines)
            }
            At::Amount => {
                self.push_order(params);
                self.at = At::Pay;
                Next::Run(Sql::OrderAmount)
            }
            At::Pay => {
                let Some(amount) = money::cents(reply.text(0, 0)) else {
                    return Next::Missing("an order of TPC-C's data has no lines; load it again");
                };
                money::push(params, amount);
                self.push(params, self.customer);
                self.at = At::Oldest;
                Next::Run(Sql::DeliverCustomer)
            }
        }
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

    fn push_order(&self, params: &mut Params) {
        self.push(params, self.order);
    }

    fn push(&self, params: &mut Params, last: i64) {
        params.ints(&[self.warehouse, self.district, last]);
    }
}
