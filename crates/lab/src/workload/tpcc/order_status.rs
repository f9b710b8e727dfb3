//! Order-Status (2.6): a customer's last order and its lines.

use super::DISTRICTS;
use super::random;
use super::statements::Sql;
use super::step::{Home, Next, Who, middle};
use crate::client::{Params, Random, Reply};

#[derive(Debug)]
pub(super) struct OrderStatus {
    warehouse: i64,
    district: i64,
    who: Who,
    at: At,
    customer: i64,
}

#[derive(Debug, Clone, Copy)]
enum At {
    Begin,
    Find,
    Found,
    Order,
    Lines,
    Commit,
    Over,
}

impl OrderStatus {
    /// 2.6.1.
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let (district, who) = (random.between(1, DISTRICTS), Who::draw(random));
        Self { warehouse: home.warehouse, district, who, at: At::Begin, customer: 0 }
    }

    pub(super) fn begin_again(&mut self) {
        self.at = At::Begin;
    }

    /// 2.6.2.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self.at {
            At::Begin => {
                self.at = At::Find;
                Sql::Begin.into()
            }
            At::Find => match self.who {
                Who::Number(number) => self.read_customer(number, params),
                Who::Name(name) => {
                    params.int(self.warehouse);
                    params.int(self.district);
                    params.text(random::last_name(name).as_str());
                    self.at = At::Found;
                    Sql::CustomersByName.into()
                }
            },
            At::Found => match middle(reply) {
                Some(number) => self.read_customer(number, params),
                None => Next::missing("no customer of TPC-C's initial data has a name; load it again"),
            },
            At::Order => {
                if reply.rows() == 0 {
                    return Next::missing("a customer of TPC-C's initial data is not there; load it again");
                }
                self.push(params, self.customer);
                self.at = At::Lines;
                Sql::LastOrder.into()
            }
            At::Lines => {
                let Some(order) = reply.int(0, 0) else {
                    return Next::missing("a customer of TPC-C's initial data has no order; load it again");
                };
                self.push(params, order);
                self.at = At::Commit;
                Sql::Lines.into()
            }
            At::Commit => {
                self.at = At::Over;
                Sql::Commit.into()
            }
            At::Over => Next::Over,
        }
    }

    fn read_customer(&mut self, number: i64, params: &mut Params) -> Next {
        self.customer = number;
        self.push(params, number);
        self.at = At::Order;
        Sql::CustomerBalance.into()
    }

    fn push(&self, params: &mut Params, last: i64) {
        for value in [self.warehouse, self.district, last] {
            params.int(value);
        }
    }
}
