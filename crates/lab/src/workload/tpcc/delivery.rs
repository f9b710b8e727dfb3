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

#[derive(Debug, Clone, Copy)]
enum At {
    Begin,
    Oldest,
    Delete,
    Order,
    Customer,
    Lines,
    Amount,
    Pay,
    Over,
}

impl Delivery {
    /// 2.7.1.
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let carrier = random.between(1, 10);
        Self { warehouse: home.warehouse, carrier, at: At::Begin, district: 0, order: 0, customer: 0 }
    }

    pub(super) fn begin_again(&mut self) {
        self.at = At::Begin;
    }

    /// 2.7.4.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self.at {
            At::Begin => {
                self.district = 0;
                self.at = At::Oldest;
                Sql::Begin.into()
            }
            At::Oldest => self.next_district(params),
            At::Delete => match reply.int(0, 0) {
                Some(order) => {
                    self.order = order;
                    self.push_order(params);
                    self.at = At::Order;
                    Sql::DeleteNewOrder.into()
                }
                // All of this district are delivered.
                None => self.next_district(params),
            },
            At::Order => {
                params.int(self.carrier);
                self.push_order(params);
                self.at = At::Customer;
                Sql::DeliverOrder.into()
            }
            At::Customer => {
                self.push_order(params);
                self.at = At::Lines;
                Sql::OrderCustomer.into()
            }
            At::Lines => {
                let Some(customer) = reply.int(0, 0) else {
                    return Next::missing("a new order of TPC-C's data has no order; load it again");
                };
                self.customer = customer;
                self.push_order(params);
                self.at = At::Amount;
                Sql::DeliverLines.into()
            }
            At::Amount => {
                self.push_order(params);
                self.at = At::Pay;
                Sql::OrderAmount.into()
            }
            At::Pay => {
                let Some(amount) = money::cents(reply.text(0, 0)) else {
                    return Next::missing("an order of TPC-C's data has no lines; load it again");
                };
                money::push(params, amount);
                self.push(params, self.customer);
                self.at = At::Oldest;
                Sql::DeliverCustomer.into()
            }
            At::Over => Next::Over,
        }
    }

    fn next_district(&mut self, params: &mut Params) -> Next {
        if self.district == DISTRICTS {
            self.at = At::Over;
            return Sql::Commit.into();
        }
        self.district += 1;
        params.int(self.warehouse);
        params.int(self.district);
        self.at = At::Delete;
        Sql::OldestNewOrder.into()
    }

    fn push_order(&self, params: &mut Params) {
        self.push(params, self.order);
    }

    fn push(&self, params: &mut Params, last: i64) {
        for value in [self.warehouse, self.district, last] {
            params.int(value);
        }
    }
}
