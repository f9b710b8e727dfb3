//! Stock-Level (2.8): how many items of the last 20 orders of the terminal's district run out.

use super::statements::Sql;
use super::step::{Home, Next};
use crate::client::{Params, Random, Reply};

#[derive(Debug)]
pub(super) struct StockLevel {
    warehouse: i64,
    district: i64,
    threshold: i64,
    at: At,
}

#[derive(Debug, Clone, Copy)]
enum At {
    Begin,
    Order,
    Count,
    Commit,
    Over,
}

impl StockLevel {
    /// 2.8.1.
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let threshold = random.between(10, 20);
        Self { warehouse: home.warehouse, district: home.district, threshold, at: At::Begin }
    }

    pub(super) fn begin_again(&mut self) {
        self.at = At::Begin;
    }

    /// 2.8.2.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self.at {
            At::Begin => {
                self.at = At::Order;
                Sql::Begin.into()
            }
            At::Order => {
                params.int(self.warehouse);
                params.int(self.district);
                self.at = At::Count;
                Sql::OrderNumber.into()
            }
            At::Count => {
                let Some(next) = reply.int(0, 0) else {
                    return Next::missing("a district of TPC-C's initial data is not there; load it again");
                };
                for value in [self.warehouse, self.district, next, next - 20, self.warehouse, self.threshold]
                {
                    params.int(value);
                }
                self.at = At::Commit;
                Sql::LowStock.into()
            }
            At::Commit => {
                self.at = At::Over;
                Sql::Commit.into()
            }
            At::Over => Next::Over,
        }
    }
}
