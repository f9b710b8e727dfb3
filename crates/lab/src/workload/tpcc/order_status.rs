//! Order-Status (2.6): a customer's last order and its lines.

use super::DISTRICTS;
use super::home::{Home, Who};
use super::statements::Sql;
use crate::client::Random;
use crate::workload::talk::{Ended, Talk};

/// Draws the inputs (2.6.1) and takes the steps of 2.6.2.2.
pub(super) async fn order_status(home: &Home, talk: &Talk, random: &mut Random) -> Result<Sql, Ended> {
    let (warehouse, district, who) = (home.warehouse, random.between(1, DISTRICTS), Who::draw(random));
    let customer = who.find(warehouse, district, talk).await?;
    talk.run(Sql::CustomerBalance, &[warehouse, district, customer]).await?;
    if talk.read(|reply| reply.rows()) == 0 {
        return Err(Ended::Missing("a customer"));
    }
    talk.run(Sql::LastOrder, &[warehouse, district, customer]).await?;
    let order = talk.int(0).ok_or("a customer's order")?;
    talk.run(Sql::Lines, &[warehouse, district, order]).await?;
    Ok(Sql::Commit)
}
