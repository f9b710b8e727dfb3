//! Order-Status (2.6): a customer's last order and its lines.

use super::DISTRICTS;
use super::statements::Sql;
use super::step::{Home, Next, Who, by_name, middle};
use crate::client::{Params, Random, Reply};

#[derive(Debug)]
pub(super) struct OrderStatus {
    warehouse: i64,
    district: i64,
    who: Who,
    at: At,
    customer: i64,
}

#[derive(Debug, Clone, Copy, Default)]
enum At {
    #[default]
    Find,
    Found,
    Order,
    Lines,
    Over,
}

impl OrderStatus {
    /// 2.6.1.
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let (district, who) = (random.between(1, DISTRICTS), Who::draw(random));
        Self { warehouse: home.warehouse, district, who, at: At::default(), customer: 0 }
    }

    pub(super) fn begin_again(&mut self) {
        self.at = At::default();
    }

    /// 2.6.2.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self.at {
            At::Find => match self.who {
                Who::Number(number) => self.read_customer(number, params),
                Who::Name(name) => {
                    self.at = At::Found;
                    by_name(name, [self.warehouse, self.district], params)
                }
            },
            At::Found => match middle(reply) {
                Some(number) => self.read_customer(number, params),
                None => Next::Missing("no customer of TPC-C's initial data has a name; load it again"),
            },
            At::Order => {
                if reply.rows() == 0 {
                    return Next::Missing("a customer of TPC-C's initial data is not there; load it again");
                }
                self.push(params, self.customer);
                self.at = At::Lines;
                Next::Run(Sql::LastOrder)
            }
            At::Lines => {
                let Some(order) = reply.int(0, 0) else {
                    return Next::Missing("a customer of TPC-C's initial data has no order; load it again");
                };
                self.push(params, order);
                self.at = At::Over;
                Next::Run(Sql::Lines)
            }
            At::Over => Next::Commit,
        }
    }

    fn read_customer(&mut self, number: i64, params: &mut Params) -> Next {
        self.customer = number;
        self.push(params, number);
        self.at = At::Order;
        Next::Run(Sql::CustomerBalance)
    }

    fn push(&self, params: &mut Params, last: i64) {
        params.ints(&[self.warehouse, self.district, last]);
    }
}
