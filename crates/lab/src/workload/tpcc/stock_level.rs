//! Stock-Level (2.8): counts the items of the last 20 orders of the terminal's district whose stock
//! is low.

use super::home::Home;
use super::statements::Sql;
use crate::client::Random;
use crate::workload::talk::{Ended, Talk};

/// Draws the inputs (2.8.1) and takes the steps of 2.8.2.2.
pub(super) async fn stock_level(home: &Home, talk: &Talk, random: &mut Random) -> Result<Sql, Ended> {
    let Home { warehouse, district, .. } = *home;
    let threshold = random.between(10, 20);
    talk.run(Sql::OrderNumber, &[warehouse, district]).await?;
    let next = talk.int(0).ok_or("a district")?;
    talk.run(Sql::LowStock, &[warehouse, district, next, next - 20, warehouse, threshold]).await?;
    Ok(Sql::Commit)
}
