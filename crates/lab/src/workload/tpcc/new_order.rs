//! New-Order (2.4): an order of 5 to 15 items. In one of a hundred the last item does not exist,
//! and the terminal rolls all back.

use super::home::Home;
use super::random;
use super::statements::Sql;
use super::{DISTRICTS, money};
use crate::client::Random;
use crate::workload::talk::{Ended, Talk};

const LINES: usize = 15;
/// An item that never exists (2.4.1.5).
const UNUSED: i64 = super::ITEMS + 1;

#[derive(Debug, Clone, Copy, Default)]
struct Line {
    item: i64,
    supply: i64,
    quantity: i64,
}

/// Draws the lines of an order. They are in the order of their stock, which is as random as any
/// other order. It keeps transactions from waiting for each other in a circle. A missing item is
/// the last.
fn draw<'a>(lines: &'a mut [Line; LINES], home: &Home, random: &mut Random) -> &'a [Line] {
    let count = random.between(5, 15) as usize;
    let wrong = random.between(1, 100) == 1;
    let lines = &mut lines[..count];
    for line in &mut *lines {
        let remote = random.between(1, 100) == 1;
        let supply = if remote { home.other(random) } else { home.warehouse };
        *line = Line { item: random::item(random), supply, quantity: random.between(1, 10) };
    }
    lines.sort_unstable_by_key(|line| (line.supply, line.item));
    if wrong {
        lines[count - 1].item = UNUSED;
    }
    lines
}

/// Draws the inputs (2.4.1) and takes the steps of 2.4.2.2. `info` is a buffer.
pub(super) async fn new_order(
    home: &Home,
    talk: &Talk,
    random: &mut Random,
    info: &mut String,
) -> Result<Sql, Ended> {
    let mut lines = [Line::default(); LINES];
    let lines = draw(&mut lines, home, random);
    let (warehouse, district) = (home.warehouse, random.between(1, DISTRICTS));
    let customer = random::customer(random);

    talk.run(Sql::CustomerAndWarehouse, &[warehouse, district, customer]).await?;
    if talk.read(|reply| reply.rows()) == 0 {
        return Err(Ended::Missing("a customer"));
    }
    talk.run(Sql::TakeOrderNumber, &[warehouse, district]).await?;
    let order = talk.int(0).ok_or("a district")?;
    talk.run(Sql::NextOrderNumber, &[order + 1, warehouse, district]).await?;
    let (count, local) = (lines.len() as i64, lines.iter().all(|line| line.supply == warehouse));
    let values = [order, district, warehouse, customer, count, i64::from(local)];
    talk.run(Sql::InsertOrder, &values).await?;
    talk.run(Sql::InsertNewOrder, &[order, district, warehouse]).await?;
    for (number, line) in (1..).zip(lines) {
        talk.run(Sql::Item, &[line.item]).await?;
        if line.item == UNUSED && talk.read(|reply| reply.rows()) == 0 {
            return Ok(Sql::Rollback);
        }
        let price = talk.read(|reply| money::cents(reply.text(0, 0))).ok_or("an item or its price")?;
        talk.run(Sql::Stock, &[line.item, line.supply]).await?;
        info.clear();
        let stock = talk.read(|reply| {
            info.push_str(reply.text(0, 1 + district as usize)?);
            reply.int(0, 0)
        });
        let left = stock.ok_or("an item's stock")? - line.quantity;
        let left = if left >= 10 { left } else { left + 91 };
        let remote = i64::from(line.supply != warehouse);
        talk.run(Sql::UpdateStock, &[left, line.quantity, remote, line.item, line.supply]).await?;
        talk.run_with(Sql::InsertLine, |params| {
            params.ints(&[order, district, warehouse, number, line.item, line.supply, line.quantity]);
            money::push(params, line.quantity * price);
            params.text(info);
        })
        .await?;
    }
    Ok(Sql::Commit)
}
