//! Payment (2.5): a customer, of another warehouse in 15 of 100 cases, pays; bad credit is noted with him.

use super::random::Text;
use super::statements::Sql;
use super::step::{Home, Next, Who, by_name, middle};
use super::{DISTRICTS, money};
use crate::client::{Params, Random, Reply};

#[derive(Debug)]
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

#[derive(Debug, Clone, Copy, Default)]
enum At {
    #[default]
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
    /// 2.5.1.
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
            at: At::default(),
            customer: 0,
            names: Text::new(),
        }
    }

    pub(super) fn begin_again(&mut self) {
        self.at = At::default();
    }

    /// 2.5.2.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self.at {
            At::PayWarehouse => {
                money::push(params, self.amount);
                params.int(self.warehouse);
                self.at = At::Warehouse;
                Next::Run(Sql::PayWarehouse)
            }
            At::Warehouse => {
                params.int(self.warehouse);
                self.at = At::PayDistrict;
                Next::Run(Sql::Warehouse)
            }
            At::PayDistrict => {
                let Some(name) = reply.text(0, 5) else {
                    return Next::Missing("a warehouse of TPC-C's initial data is not there; load it again");
                };
                self.names = Text::new();
                self.names.push(name);
                money::push(params, self.amount);
                params.ints(&[self.warehouse, self.district]);
                self.at = At::District;
                Next::Run(Sql::PayDistrict)
            }
            At::District => {
                params.ints(&[self.warehouse, self.district]);
                self.at = At::Find;
                Next::Run(Sql::District)
            }
            At::Find => {
                let Some(name) = reply.text(0, 5) else {
                    return Next::Missing("a district of TPC-C's initial data is not there; load it again");
                };
                self.names.push("    ");
                self.names.push(name);
                match self.who {
                    Who::Number(number) => self.read_customer(number, params),
                    Who::Name(name) => {
                        self.at = At::Found;
                        by_name(name, [self.customer_warehouse, self.customer_district], params)
                    }
                }
            }
            At::Found => match middle(reply) {
                Some(number) => self.read_customer(number, params),
                None => Next::Missing("no customer of TPC-C's initial data has a name; load it again"),
            },
            At::PayCustomer | At::History | At::Over => self.pay(params, reply),
        }
    }

    fn read_customer(&mut self, number: i64, params: &mut Params) -> Next {
        self.customer = number;
        self.push_customer(params);
        self.at = At::PayCustomer;
        Next::Run(Sql::Customer)
    }

    fn push_customer(&self, params: &mut Params) {
        params.ints(&[self.customer_warehouse, self.customer_district, self.customer]);
    }

    fn pay(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self.at {
            At::PayCustomer => {
                let (Some(credit), Some(data)) = (reply.text(0, 10), reply.text(0, 14)) else {
                    return Next::Missing("a customer of TPC-C's initial data is not there; load it again");
                };
                money::push(params, self.amount);
                money::push(params, self.amount);
                self.at = At::History;
                if credit == "BC" {
                    params.text(self.noted(data).as_str());
                    self.push_customer(params);
                    return Next::Run(Sql::PayBadCustomer);
                }
                self.push_customer(params);
                Next::Run(Sql::PayCustomer)
            }
            At::History => {
                params.ints(&[self.customer, self.customer_district, self.customer_warehouse]);
                params.ints(&[self.district, self.warehouse]);
                money::push(params, self.amount);
                params.text(self.names.as_str());
                self.at = At::Over;
                Next::Run(Sql::InsertHistory)
            }
            _ => Next::Commit,
        }
    }

    /// C_DATA with this payment before it, cut to 500 characters.
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
}
