//! New-Order (2.4): an order of 5 to 15 items. In one of a hundred the last item does not exist,
//! and the terminal rolls all back.

use super::random::{self, Text};
use super::statements::Sql;
use super::step::{Home, Next, Transaction};
use super::{DISTRICTS, money};
use crate::client::{Params, Random, Reply};

const LINES: usize = 15;
/// An item that never exists (2.4.1.5).
const UNUSED: i64 = super::ITEMS + 1;

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    item: i64,
    supply: i64,
    quantity: i64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NewOrder {
    warehouse: i64,
    district: i64,
    customer: i64,
    lines: [Line; LINES],
    count: usize,
    at: At,
    order: i64,
    /// The line under way, with the values read for it.
    line: usize,
    price: i64,
    info: Text<24>,
}

#[derive(Debug, Clone, Copy)]
enum At {
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
    /// Draws the inputs (2.4.1). Lines are in the order of their stock, which is as random as any
    /// other order. It keeps transactions from waiting for each other in a circle. A missing item
    /// is the last.
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
            at: At::Customer,
            order: 0,
            line: 0,
            price: 0,
            info: Text::new(),
        }
    }
}

impl Transaction for NewOrder {
    /// The steps of 2.4.2.2.
    fn next(&mut self, params: &mut Params, reply: &Reply) -> Result<Next, &'static str> {
        let (warehouse, district) = (self.warehouse, self.district);
        let line = self.lines[self.line.min(LINES - 1)];
        let (at, sql) = match self.at {
            At::Customer => {
                params.ints(&[warehouse, district, self.customer]);
                (At::Take, Sql::CustomerAndWarehouse)
            }
            At::Take if reply.rows() == 0 => return Err("a customer"),
            At::Take => {
                params.ints(&[warehouse, district]);
                (At::Next, Sql::TakeOrderNumber)
            }
            At::Next => {
                self.order = reply.int(0, 0).ok_or("a district")?;
                params.ints(&[self.order + 1, warehouse, district]);
                (At::Order, Sql::NextOrderNumber)
            }
            At::Order => {
                let local = i64::from(self.lines[..self.count].iter().all(|line| line.supply == warehouse));
                params.ints(&[self.order, district, warehouse, self.customer, self.count as i64, local]);
                (At::NewOrder, Sql::InsertOrder)
            }
            At::NewOrder => {
                params.ints(&[self.order, district, warehouse]);
                (At::Item, Sql::InsertNewOrder)
            }
            At::Item => {
                params.int(line.item);
                (At::Stock, Sql::Item)
            }
            At::Stock if line.item == UNUSED && reply.rows() == 0 => return Ok(Next::RollBack),
            At::Stock => {
                self.price = money::cents(reply.text(0, 0)).ok_or("an item or its price")?;
                params.ints(&[line.item, line.supply]);
                (At::UpdateStock, Sql::Stock)
            }
            At::UpdateStock => {
                let info = reply.text(0, 1 + district as usize);
                let (stock, info) = reply.int(0, 0).zip(info).ok_or("an item's stock")?;
                self.info = Text::new();
                self.info.push(info);
                let left = stock - line.quantity;
                let left = if left >= 10 { left } else { left + 91 };
                let remote = i64::from(line.supply != warehouse);
                params.ints(&[left, line.quantity, remote, line.item, line.supply]);
                (At::Line, Sql::UpdateStock)
            }
            At::Line => {
                let number = self.line as i64 + 1;
                params.ints(&[
                    self.order,
                    district,
                    warehouse,
                    number,
                    line.item,
                    line.supply,
                    line.quantity,
                ]);
                money::push(params, line.quantity * self.price);
                params.text(self.info.as_str());
                self.line += 1;
                (if self.line < self.count { At::Item } else { At::Over }, Sql::InsertLine)
            }
            At::Over => return Ok(Next::Commit),
        };
        self.at = at;
        Ok(Next::Run(sql))
    }
}
