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

#[derive(Debug, Clone, Copy, Default)]
enum At {
    #[default]
    Order,
    Count,
    Over,
}

impl StockLevel {
    /// 2.8.1.
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let threshold = random.between(10, 20);
        Self { warehouse: home.warehouse, district: home.district, threshold, at: At::default() }
    }

    pub(super) fn begin_again(&mut self) {
        self.at = At::default();
    }

    /// 2.8.2.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        let (warehouse, district) = (self.warehouse, self.district);
        match self.at {
            At::Order => {
                params.ints(&[warehouse, district]);
                self.at = At::Count;
                Next::Run(Sql::OrderNumber)
            }
            At::Count => {
                let Some(next) = reply.int(0, 0) else {
                    return Next::Missing("a district of TPC-C's initial data is not there; load it again");
                };
                params.ints(&[warehouse, district, next, next - 20, warehouse, self.threshold]);
                self.at = At::Over;
                Next::Run(Sql::LowStock)
            }
            At::Over => Next::Commit,
        }
    }
}
