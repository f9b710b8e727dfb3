//! TPC-C, after the TPC Benchmark C specification (revision 5.11). The lab has its schema (clause
//! 1.3), the five transactions (clause 2), the full mix by decks of cards (5.2.4.2). It also has
//! the initial data (4.3) and the consistency conditions (3.3.2). Comments name the clauses.
//!
//! The lab decides as follows where the clauses leave room. Each client is a terminal that sends
//! one statement at a time and waits for its reply. Terminals have no keying or think times, so the
//! number of warehouses does not limit the load, and a figure is no audited tpmC. Terminals fetch,
//! but do not compute, values that are only displayed (a total, brand or generic goods). tpmC is
//! the number of new orders a minute, including those rolled back on purpose (clause 2.4.2.3).

mod check;
mod delivery;
mod home;
mod load;
mod money;
mod new_order;
mod order_status;
mod payment;
mod random;
mod schema;
mod statements;
mod stock_level;
mod terminal;

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::Client;
use crate::client::Statement;
use crate::record::Check;
use crate::workload::{Before, Found, Workload};

/// Districts of a warehouse (1.2.1).
const DISTRICTS: i64 = 10;
/// Customers of a district (1.2.1).
const CUSTOMERS: i64 = 3000;
/// Items (1.2.1).
const ITEMS: i64 = 100_000;

/// Kinds of transactions, in the order of [`Workload::kinds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

#[derive(Debug, Clone)]
pub struct Tpcc {
    warehouses: i64,
    seed: u64,
    kinds: [String; 5],
}

impl Tpcc {
    /// With this many warehouses; the seed is that of the initial data.
    pub fn new(warehouses: u32, seed: u64) -> Self {
        let kinds = ["new_order", "payment", "order_status", "delivery", "stock_level"].map(str::to_owned);
        Self { warehouses: i64::from(warehouses.max(1)), seed, kinds }
    }
}

impl Workload for Tpcc {
    fn name(&self) -> &str {
        "tpcc"
    }

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn load(&self, to: &Target, threads: usize, progress: &Progress) -> Result<(), Fault> {
        load::load(to, self.warehouses, self.seed, threads, progress)
    }

    fn found(&self, control: &mut Control) -> Result<Found, Fault> {
        match control.value("SELECT count(*) FROM warehouse") {
            // Warehouses are loaded after everything else.
            Ok(Some(count)) if count == self.warehouses.to_string() => Ok(Found::Loaded),
            Ok(count) => {
                Ok(Found::Other(format!("TPC-C's tables with {} warehouses", count.unwrap_or_default())))
            }
            Err(fault) if fault.is_unknown_table() => Ok(Found::Nothing),
            Err(fault) => Err(fault),
        }
    }

    fn check(&self, control: &mut Control, _: &Before) -> Result<Vec<Check>, Fault> {
        check::check(control)
    }

    fn statements(&self, _: Dialect) -> Vec<Statement> {
        statements::all()
    }

    fn client(&self, index: usize, _: usize) -> Box<dyn Client> {
        terminal::new(index as i64, self.warehouses)
    }
}

#[cfg(test)]
mod tests;
