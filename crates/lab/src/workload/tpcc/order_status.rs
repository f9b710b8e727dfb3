//! Order-Status (2.6): a customer's last order and its lines.

use super::DISTRICTS;
use super::statements::Sql;
use super::step::{Home, Next, Transaction, Who, middle};
use crate::client::{Params, Random, Reply};

#[derive(Debug, Clone, Copy)]
pub(super) struct OrderStatus {
    warehouse: i64,
    district: i64,
    who: Who,
    at: At,
    customer: i64,
}

#[derive(Debug, Clone, Copy)]
enum At {
    Find,
    Found,
    Order,
    Lines,
    Over,
}

impl OrderStatus {
    /// Draws the inputs (2.6.1).
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let (district, who) = (random.between(1, DISTRICTS), Who::draw(random));
        Self { warehouse: home.warehouse, district, who, at: At::Find, customer: 0 }
    }
}

impl Transaction for OrderStatus {
    /// The steps of 2.6.2.2.
    fn next(&mut self, params: &mut Params, reply: &Reply) -> Result<Next, &'static str> {
        let (last, at, sql) = match (self.at, self.who) {
            (At::Find, Who::Name(name)) => {
                self.at = At::Found;
                return Ok(Who::ask(name, [self.warehouse, self.district], params));
            }
            (At::Find | At::Found, who) => {
                self.customer = match who {
                    Who::Number(number) => number,
                    Who::Name(_) => middle(reply)?,
                };
                (self.customer, At::Order, Sql::CustomerBalance)
            }
            (At::Order, _) if reply.rows() == 0 => return Err("a customer"),
            (At::Order, _) => (self.customer, At::Lines, Sql::LastOrder),
            (At::Lines, _) => (reply.int(0, 0).ok_or("a customer's order")?, At::Over, Sql::Lines),
            (At::Over, _) => return Ok(Next::Commit),
        };
        params.ints(&[self.warehouse, self.district, last]);
        self.at = at;
        Ok(Next::Run(sql))
    }
}
