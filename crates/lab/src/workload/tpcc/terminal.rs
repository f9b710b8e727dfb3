//! A terminal: deals cards from a shuffled deck (5.2.4.2), and runs the transaction on the card
//! with inputs that it draws. A repetition draws the same inputs again.

use std::convert::Infallible;

use super::Kind;
use super::delivery::delivery;
use super::home::Home;
use super::load::shuffle;
use super::new_order::new_order;
use super::order_status::order_status;
use super::payment::payment;
use super::statements::Sql;
use super::stock_level::stock_level;
use crate::client::{Client, Random, Step};
use crate::workload::talk::{Ended, Talk, Talker};

/// Cards of each kind in a deck, which make the shares of the mix exact: 10, 10, 1, 1 and 1 of 23.
const DECK: [Kind; 23] = {
    let mut deck = [Kind::NewOrder; 23];
    let mut at = 10;
    while at < 20 {
        deck[at] = Kind::Payment;
        at += 1;
    }
    deck[20] = Kind::OrderStatus;
    deck[21] = Kind::Delivery;
    deck[22] = Kind::StockLevel;
    deck
};

/// Terminal number `index`, from 0.
pub(super) fn new(index: i64, warehouses: i64) -> Box<dyn Client> {
    let (warehouse, district) = (index % warehouses + 1, index / warehouses % 10 + 1);
    let home = Home { warehouse, district, warehouses };
    Talker::new(move |talk, random| Box::pin(work(home, talk, random)))
}

async fn work(home: Home, talk: Talk, mut random: Random) -> Infallible {
    let (mut deck, mut buffers) = (DECK, Default::default());
    loop {
        shuffle(&mut random, &mut deck);
        for kind in deck {
            talk.begin(kind as u8);
            let drawn = random.clone();
            while let Err(ended) = transaction(kind, &home, &talk, &mut random, &mut buffers).await {
                match ended {
                    Ended::Failed { again: true } => random.clone_from(&drawn),
                    Ended::Failed { again: false } => break,
                    Ended::Missing(what) => {
                        let why = format!("TPC-C's data lacks {what}: load it again (--reload)");
                        // The driver calls no client again that says so.
                        _ = talk.step(Step::Abort(why.into())).await;
                    }
                }
            }
        }
    }
}

async fn transaction(
    kind: Kind,
    home: &Home,
    talk: &Talk,
    random: &mut Random,
    buffers: &mut [String; 2],
) -> Result<(), Ended> {
    talk.run(Sql::Begin, &[]).await?;
    let end = match kind {
        Kind::NewOrder => new_order(home, talk, random, &mut buffers[0]).await?,
        Kind::Payment => payment(home, talk, random, buffers).await?,
        Kind::OrderStatus => order_status(home, talk, random).await?,
        Kind::Delivery => delivery(home, talk, random).await?,
        Kind::StockLevel => stock_level(home, talk, random).await?,
    };
    talk.run(end, &[]).await?;
    talk.step(Step::Done(kind as u8)).await
}
