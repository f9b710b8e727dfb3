//! New-Order (2.4): an order of 5 to 15 items. In one of a hundred the last item does not exist, and all is rolled back.

use super::random::{self, Text};
use super::statements::Sql;
use super::step::{Home, Next};
use super::{DISTRICTS, money};
use crate::client::{Params, Random, Reply};

/// The most lines of an order.
const LINES: usize = 15;
/// An item that is never there (2.4.1.5).
const UNUSED: i64 = super::ITEMS + 1;

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    item: i64,
    supply: i64,
    quantity: i64,
}

#[derive(Debug)]
pub(super) struct NewOrder {
    warehouse: i64,
    district: i64,
    customer: i64,
    lines: [Line; LINES],
    count: usize,
    at: At,
    order: i64,
    /// Under way, with what was read of it.
    line: usize,
    price: i64,
    info: Text<24>,
}

#[derive(Debug, Clone, Copy, Default)]
enum At {
    #[default]
    Customer,
    Take,
    Next,
    Order,
    NewOrder,
    Item,
    Stock,
    UpdateStock,
    Line,
    Over,
}

impl NewOrder {
    /// 2.4.1. Lines are in the order of their stock, which is as random as any and keeps transactions from waiting for each
    /// other in a circle; a missing item is the last.
    pub(super) fn draw(random: &mut Random, home: &Home) -> Self {
        let mut lines = [Line::default(); LINES];
        let count = random.between(5, 15) as usize;
        let wrong = random.between(1, 100) == 1;
        for line in &mut lines[..count] {
            let remote = random.between(1, 100) == 1;
            let supply = if remote { home.other(random) } else { home.warehouse };
            *line = Line { item: random::item(random), supply, quantity: random.between(1, 10) };
        }
        lines[..count].sort_unstable_by_key(|line| (line.supply, line.item));
        if wrong {
            lines[count - 1].item = UNUSED;
        }
        Self {
            warehouse: home.warehouse,
            district: random.between(1, DISTRICTS),
            customer: random::customer(random),
            lines,
            count,
            at: At::default(),
            order: 0,
            line: 0,
            price: 0,
            info: Text::new(),
        }
    }

    pub(super) fn begin_again(&mut self) {
        (self.at, self.line) = (At::default(), 0);
    }

    /// 2.4.2.2.
    pub(super) fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        let mut ints = |values: &[i64]| values.iter().for_each(|&value| params.int(value));
        let (warehouse, district) = (self.warehouse, self.district);
        match self.at {
            At::Customer => {
                ints(&[warehouse, district, self.customer]);
                self.at = At::Take;
                Next::Run(Sql::CustomerAndWarehouse)
            }
            At::Take => {
                if reply.rows() == 0 {
                    return Next::Missing("a customer of TPC-C's initial data is not there; load it again");
                }
                ints(&[warehouse, district]);
                self.at = At::Next;
                Next::Run(Sql::TakeOrderNumber)
            }
            At::Next => {
                let Some(order) = reply.int(0, 0) else {
                    return Next::Missing("a district of TPC-C's initial data is not there; load it again");
                };
                self.order = order;
                ints(&[order + 1, warehouse, district]);
                self.at = At::Order;
                Next::Run(Sql::NextOrderNumber)
            }
            At::Order => {
                let all_local = self.lines[..self.count].iter().all(|line| line.supply == warehouse);
                let local = i64::from(all_local);
                ints(&[self.order, district, warehouse, self.customer, self.count as i64, local]);
                self.at = At::NewOrder;
                Next::Run(Sql::InsertOrder)
            }
            At::NewOrder => {
                ints(&[self.order, district, warehouse]);
                self.at = At::Item;
                Next::Run(Sql::InsertNewOrder)
            }
            At::Over => Next::Commit,
            At::Item | At::Stock | At::UpdateStock | At::Line => self.next_line(params, reply),
        }
    }

    fn next_line(&mut self, params: &mut Params, reply: &Reply) -> Next {
        let mut ints = |values: &[i64]| values.iter().for_each(|&value| params.int(value));
        let line = self.lines[self.line];
        match self.at {
            At::Stock => {
                if line.item == UNUSED && reply.rows() == 0 {
                    return Next::RollBack;
                }
                let Some(price) = money::cents(reply.text(0, 0)) else {
                    return Next::Missing(
                        "an item of TPC-C's initial data is not there, or has no price; load it again",
                    );
                };
                self.price = price;
                ints(&[line.item, line.supply]);
                self.at = At::UpdateStock;
                Next::Run(Sql::Stock)
            }
            At::UpdateStock => {
                let info = reply.text(0, 1 + self.district as usize);
                let (Some(stock), Some(info)) = (reply.int(0, 0), info) else {
                    return Next::Missing("an item of TPC-C's stock is not there; load the data again");
                };
                self.info = Text::new();
                self.info.push(info);
                let left = stock - line.quantity;
                let left = if left >= 10 { left } else { left + 91 };
                let remote = i64::from(line.supply != self.warehouse);
                ints(&[left, line.quantity, remote, line.item, line.supply]);
                self.at = At::Line;
                Next::Run(Sql::UpdateStock)
            }
            At::Line => {
                let number = self.line as i64 + 1;
                ints(&[
                    self.order,
                    self.district,
                    self.warehouse,
                    number,
                    line.item,
                    line.supply,
                    line.quantity,
                ]);
                money::push(params, line.quantity * self.price);
                params.text(self.info.as_str());
                self.line += 1;
                self.at = if self.line < self.count { At::Item } else { At::Over };
                Next::Run(Sql::InsertLine)
            }
            _ => {
                ints(&[line.item]);
                self.at = At::Stock;
                Next::Run(Sql::Item)
            }
        }
    }
}
