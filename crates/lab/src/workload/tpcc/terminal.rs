//! A terminal: deals cards from a shuffled deck (5.2.4.2), draws the inputs of the transaction on
//! the card, and steps it.
//!
//! A transaction is a state machine with two parts: its inputs, which a repetition keeps, and its
//! position, which a repetition resets. So the terminal keeps the transaction as it was drawn.

use super::Kind;
use super::delivery::Delivery;
use super::load::shuffle;
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::statements::Sql;
use super::step::{Home, Next, Transaction};
use super::stock_level::StockLevel;
use crate::client::{Client, Random, Step, Turn};

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

#[derive(Debug, Clone, Copy)]
#[expect(clippy::large_enum_variant, reason = "a terminal holds two, in place, and never allocates")]
enum Work {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Work {
    fn draw(kind: Kind, random: &mut Random, home: &Home) -> Self {
        match kind {
            Kind::NewOrder => Self::NewOrder(NewOrder::draw(random, home)),
            Kind::Payment => Self::Payment(Payment::draw(random, home)),
            Kind::OrderStatus => Self::OrderStatus(OrderStatus::draw(random, home)),
            Kind::Delivery => Self::Delivery(Delivery::draw(random, home)),
            Kind::StockLevel => Self::StockLevel(StockLevel::draw(random, home)),
        }
    }

    fn transaction(&mut self) -> &mut dyn Transaction {
        match self {
            Self::NewOrder(work) => work,
            Self::Payment(work) => work,
            Self::OrderStatus(work) => work,
            Self::Delivery(work) => work,
            Self::StockLevel(work) => work,
        }
    }
}

/// The stage of a transaction.
#[derive(Debug)]
enum Stage {
    /// The terminal has drawn none.
    Draw,
    /// The terminal has drawn one, which has not begun.
    Begin,
    Within,
    Over,
}

#[derive(Debug)]
pub(super) struct Terminal {
    home: Home,
    deck: [Kind; 23],
    /// Number of cards dealt from it; all, before the first shuffle.
    dealt: usize,
    kind: Kind,
    /// The transaction as it was drawn, and its copy under way.
    drawn: Work,
    work: Work,
    stage: Stage,
}

impl Terminal {
    pub(super) fn new(index: i64, warehouses: i64) -> Self {
        let (warehouse, district) = (index % warehouses + 1, index / warehouses % 10 + 1);
        let home = Home { warehouse, district, warehouses };
        let kind = Kind::StockLevel;
        let drawn = Work::draw(kind, &mut Random::new(0, 0), &home);
        Self { home, deck: DECK, dealt: DECK.len(), kind, drawn, work: drawn, stage: Stage::Draw }
    }

    fn deal(&mut self, random: &mut Random) {
        if self.dealt == self.deck.len() {
            shuffle(random, &mut self.deck);
            self.dealt = 0;
        }
        self.kind = self.deck[self.dealt];
        self.dealt += 1;
        self.drawn = Work::draw(self.kind, random, &self.home);
    }
}

impl Client for Terminal {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        let (step, stage) = match self.stage {
            Stage::Draw | Stage::Begin => {
                if matches!(self.stage, Stage::Draw) {
                    self.deal(turn.random);
                }
                self.work = self.drawn;
                (Sql::Begin.run(), Stage::Within)
            }
            Stage::Within => match self.work.transaction().next(turn.params, turn.reply) {
                Ok(Next::Run(sql)) => (sql.run(), Stage::Within),
                Ok(Next::Commit) => (Sql::Commit.run(), Stage::Over),
                Ok(Next::RollBack) => (Sql::Rollback.run(), Stage::Over),
                Err(what) => {
                    let why = format!("TPC-C's data lacks {what}: load it again (--reload)");
                    (Step::Abort(why.into()), Stage::Over)
                }
            },
            Stage::Over => (Step::Done(self.kind as u8), Stage::Draw),
        };
        self.stage = stage;
        step
    }

    fn failed(&mut self, again: bool) -> u8 {
        self.stage = if again { Stage::Begin } else { Stage::Draw };
        self.kind as u8
    }
}
