//! Payment (2.5): a customer, from another warehouse in 15 of 100 cases, pays. A customer with bad
//! credit gets a note about it.

use super::random::Text;
use super::statements::Sql;
use super::step::{Home, Next, Transaction, Who, middle};
use super::{DISTRICTS, money};
use crate::client::{Params, Random, Reply};

#[derive(Debug, Clone, Copy)]
pub(super) struct Payment {
    warehouse: i64,
    district: i64,
    customer_warehouse: i64,
    customer_district: i64,
    who: Who,
    /// In cents.
    amount: i64,
    at: At,
    customer: i64,
    /// H_DATA: the names of warehouse and district.
    names: Text<24>,
}

#[derive(Debug, Clone, Copy)]
enum At {
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    Find,
    Found,
    PayCustomer,
    History,
    Over,
}

impl Payment {
    /// Draws the inputs (2.5.1).
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let district = random.between(1, DISTRICTS);
        let (customer_warehouse, customer_district) = if random.between(1, 100) <= 85 {
            (home.warehouse, district)
        } else {
            (home.other(random), random.between(1, DISTRICTS))
        };
        Self {
            warehouse: home.warehouse,
            district,
            customer_warehouse,
            customer_district,
            who: Who::draw(random),
            amount: random.between(100, 500_000),
            at: At::PayWarehouse,
            customer: 0,
            names: Text::new(),
        }
    }

    /// C_DATA with this payment in front, cut to 500 characters.
    fn noted(&self, data: &str) -> Text<500> {
        let mut noted = Text::new();
        let customer = [self.customer, self.customer_district, self.customer_warehouse];
        for value in customer.into_iter().chain([self.district, self.warehouse, self.amount]) {
            noted.push_int(value);
            noted.push(" ");
        }
        noted.push(data);
        noted
    }

    fn push_customer(&self, params: &mut Params) {
        params.ints(&[self.customer_warehouse, self.customer_district, self.customer]);
    }
}

impl Transaction for Payment {
    /// The steps of 2.5.2.2.
    fn next(&mut self, params: &mut Params, reply: &Reply) -> Result<Next, &'static str> {
        let (at, sql) = match self.at {
            At::PayWarehouse => {
                money::push(params, self.amount);
                params.int(self.warehouse);
                (At::Warehouse, Sql::PayWarehouse)
            }
            At::Warehouse => {
                params.int(self.warehouse);
                (At::PayDistrict, Sql::Warehouse)
            }
            At::PayDistrict => {
                self.names.push(reply.text(0, 5).ok_or("a warehouse")?);
                money::push(params, self.amount);
                params.ints(&[self.warehouse, self.district]);
                (At::District, Sql::PayDistrict)
            }
            At::District => {
                params.ints(&[self.warehouse, self.district]);
                (At::Find, Sql::District)
            }
            At::Find | At::Found => {
                if matches!(self.at, At::Find) {
                    self.names.push("    ");
                    self.names.push(reply.text(0, 5).ok_or("a district")?);
                }
                self.customer = match (self.at, self.who) {
                    (At::Find, Who::Name(name)) => {
                        self.at = At::Found;
                        let place = [self.customer_warehouse, self.customer_district];
                        return Ok(Who::ask(name, place, params));
                    }
                    (_, Who::Name(_)) => middle(reply)?,
                    (_, Who::Number(number)) => number,
                };
                self.push_customer(params);
                (At::PayCustomer, Sql::Customer)
            }
            At::PayCustomer => {
                let (credit, data) = reply.text(0, 10).zip(reply.text(0, 14)).ok_or("a customer")?;
                money::push(params, self.amount);
                money::push(params, self.amount);
                let bad = credit == "BC";
                if bad {
                    params.text(self.noted(data).as_str());
                }
                self.push_customer(params);
                (At::History, if bad { Sql::PayBadCustomer } else { Sql::PayCustomer })
            }
            At::History => {
                params.ints(&[self.customer, self.customer_district, self.customer_warehouse]);
                params.ints(&[self.district, self.warehouse]);
                money::push(params, self.amount);
                params.text(self.names.as_str());
                (At::Over, Sql::InsertHistory)
            }
            At::Over => return Ok(Next::Commit),
        };
        self.at = at;
        Ok(Next::Run(sql))
    }
}
