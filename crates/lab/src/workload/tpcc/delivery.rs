//! Delivery (2.7): delivers the oldest new order of each district, all ten in one transaction, as
//! 2.7.4.2 permits.
//!
//! Reads follow the writes of the same rows: a snapshot may be older than the order, but a
//! transaction always sees its own writes.

use super::home::Home;
use super::statements::Sql;
use super::{DISTRICTS, money};
use crate::client::Random;
use crate::workload::talk::{Ended, Talk};

/// Draws the inputs (2.7.1) and takes the steps of 2.7.4.2.
pub(super) async fn delivery(home: &Home, talk: &Talk, random: &mut Random) -> Result<Sql, Ended> {
    let (warehouse, carrier) = (home.warehouse, random.between(1, 10));
    for district in 1..=DISTRICTS {
        talk.run(Sql::OldestNewOrder, &[warehouse, district]).await?;
        // A district may have no undelivered orders.
        let Some(order) = talk.int(0) else { continue };
        let key = [warehouse, district, order];
        talk.run(Sql::DeleteNewOrder, &key).await?;
        talk.run(Sql::DeliverOrder, &[carrier, warehouse, district, order]).await?;
        talk.run(Sql::OrderCustomer, &key).await?;
        let customer = talk.int(0).ok_or("a new order")?;
        talk.run(Sql::DeliverLines, &key).await?;
        talk.run(Sql::OrderAmount, &key).await?;
        let amount = talk.read(|reply| money::cents(reply.text(0, 0))).ok_or("the lines of an order")?;
        talk.run_with(Sql::DeliverCustomer, |params| {
            money::push(params, amount);
            params.ints(&[warehouse, district, customer]);
        })
        .await?;
    }
    Ok(Sql::Commit)
}
