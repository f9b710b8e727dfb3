//! A terminal: deals cards from a shuffled deck (5.2.4.2), draws the inputs of the transaction on the card, and steps it.
//!
//! A transaction is a state machine with two parts: its inputs, which a repetition keeps, and where it is, which a repetition
//! begins anew. A terminal that keys and thinks does both before the transaction, in one pause that its latency leaves out.

use std::time::Duration;

use super::Kind;
use super::delivery::Delivery;
use super::load::shuffle;
use super::new_order::NewOrder;
use super::order_status::OrderStatus;
use super::payment::Payment;
use super::statements::Sql;
use super::step::{Home, Next};
use super::stock_level::StockLevel;
use crate::client::{Client, Params, Random, Reply, Step, Turn};

/// Cards of each kind in a deck, which makes the shares of the mix exact: 10, 10, 1, 1 and 1 of 23.
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

impl Kind {
    /// Seconds of keying, and of thinking in the mean (5.2.5.7).
    fn times(self) -> (u64, f64) {
        match self {
            Self::NewOrder => (18, 12.0),
            Self::Payment => (3, 12.0),
            Self::OrderStatus => (2, 10.0),
            Self::Delivery => (2, 5.0),
            Self::StockLevel => (2, 5.0),
        }
    }
}

/// A transaction under way.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a terminal holds one, in place, and never allocates")]
enum Work {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

/// How far a transaction is.
#[derive(Debug)]
enum Stage {
    Begin,
    Within,
    Over,
}

/// A terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    home: Home,
    deck: [Kind; 23],
    /// Cards dealt of it; all, before the first is shuffled.
    dealt: usize,
    work: Option<Work>,
    stage: Stage,
    /// Whether it keys and thinks.
    keying: bool,
    /// How long it has to think of what it was last shown.
    thinking: Duration,
}

impl Terminal {
    pub(super) fn new(index: i64, warehouses: i64, keying: bool) -> Self {
        let home =
            Home { warehouse: index % warehouses + 1, district: index / warehouses % 10 + 1, warehouses };
        Self {
            home,
            deck: DECK,
            dealt: DECK.len(),
            work: None,
            stage: Stage::Begin,
            keying,
            thinking: Duration::ZERO,
        }
    }

    /// How long it thinks of its last transaction and keys this one; and notes how long it will think of it.
    fn keys(&mut self, kind: Kind, random: &mut Random) -> Duration {
        let (keying, thinking) = kind.times();
        // Distributed exponentially, cut off at ten times the mean (5.2.5.4).
        let think = (-(1.0 - random.unit()).ln()).min(10.0) * thinking;
        std::mem::replace(&mut self.thinking, Duration::from_secs_f64(think)) + Duration::from_secs(keying)
    }

    fn deal(&mut self, random: &mut Random) -> Work {
        if self.dealt == self.deck.len() {
            shuffle(random, &mut self.deck);
            self.dealt = 0;
        }
        let card = self.deck[self.dealt];
        self.dealt += 1;
        match card {
            Kind::NewOrder => Work::NewOrder(NewOrder::draw(random, &self.home)),
            Kind::Payment => Work::Payment(Payment::draw(random, &self.home)),
            Kind::OrderStatus => Work::OrderStatus(OrderStatus::draw(random, &self.home)),
            Kind::Delivery => Work::Delivery(Delivery::draw(random, &self.home)),
            Kind::StockLevel => Work::StockLevel(StockLevel::draw(random, &self.home)),
        }
    }
}

impl Work {
    fn kind(&self) -> Kind {
        match self {
            Self::NewOrder(_) => Kind::NewOrder,
            Self::Payment(_) => Kind::Payment,
            Self::OrderStatus(_) => Kind::OrderStatus,
            Self::Delivery(_) => Kind::Delivery,
            Self::StockLevel(_) => Kind::StockLevel,
        }
    }

    fn next(&mut self, params: &mut Params, reply: &Reply) -> Next {
        match self {
            Self::NewOrder(work) => work.next(params, reply),
            Self::Payment(work) => work.next(params, reply),
            Self::OrderStatus(work) => work.next(params, reply),
            Self::Delivery(work) => work.next(params, reply),
            Self::StockLevel(work) => work.next(params, reply),
        }
    }

    fn begin_again(&mut self) {
        match self {
            Self::NewOrder(work) => work.begin_again(),
            Self::Payment(work) => work.begin_again(),
            Self::OrderStatus(work) => work.begin_again(),
            Self::Delivery(work) => work.begin_again(),
            Self::StockLevel(work) => work.begin_again(),
        }
    }
}

impl Client for Terminal {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        if self.work.is_none() {
            let work = self.deal(turn.random);
            let kind = work.kind();
            self.work = Some(work);
            if self.keying {
                return Step::Pause(self.keys(kind, turn.random));
            }
        }
        let Some(work) = &mut self.work else { unreachable!("dealt above") };
        match self.stage {
            Stage::Begin => {
                self.stage = Stage::Within;
                return Sql::Begin.run();
            }
            Stage::Over => {
                let kind = work.kind();
                (self.work, self.stage) = (None, Stage::Begin);
                return Step::Done(kind as u8);
            }
            Stage::Within => {}
        }
        let end = match work.next(turn.params, turn.reply) {
            Next::Run(sql) => return sql.run(),
            Next::Missing(what) => return Step::Abort(what.into()),
            Next::Commit => Sql::Commit,
            Next::RollBack => Sql::Rollback,
        };
        self.stage = Stage::Over;
        end.run()
    }

    fn failed(&mut self, again: bool) -> u8 {
        // A transaction fails by one of its statements, so there is one under way.
        let kind = self.work.as_ref().map_or(Kind::NewOrder, Work::kind);
        self.stage = Stage::Begin;
        match &mut self.work {
            Some(work) if again => work.begin_again(),
            _ => self.work = None,
        }
        kind as u8
    }
}
