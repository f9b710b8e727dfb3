//! The initial data (4.3.3.1). Threads make its parts side by side, each part from random numbers
//! of its own. So the same seed gives the same data with any number of threads.

use super::random::{self, digits, letters};
use super::{CUSTOMERS, DISTRICTS, ITEMS, money, schema};
use crate::arm::Target;
use crate::arm::control::{Control, Fault, Progress, in_parallel};
use crate::client::{Params, Random};

/// Delivered orders of a district; the later ones are new orders.
const DELIVERED: i64 = 2100;

/// Parts of a warehouse.
const PARTS: usize = 3;

/// The state that all parts share.
struct Load<'a> {
    seed: u64,
    /// The time of the load, which all dates use.
    now: String,
    progress: &'a Progress,
}

pub(super) fn load(
    to: &Target,
    warehouses: i64,
    seed: u64,
    threads: usize,
    progress: &Progress,
) -> Result<(), Fault> {
    // An order has 5 to 15 lines, so 10 on average.
    let of_warehouse =
        1 + DISTRICTS + ITEMS + DISTRICTS * (CUSTOMERS * (1 + 1 + 1 + 10) + CUSTOMERS - DELIVERED);
    progress.set_total((ITEMS + warehouses * of_warehouse) as u64);
    let mut control = Control::connect(to)?;
    for statement in schema::before(to.dialect) {
        control.execute(&statement)?;
    }
    let now = control.value("SELECT CAST(CURRENT_TIMESTAMP AS char(19))")?.unwrap_or_default();
    let load = Load { seed, now, progress };
    in_parallel(to, threads, 1 + PARTS * warehouses as usize, progress, |control, part| {
        load.part(control, part)
    })?;
    for statement in schema::after(to.dialect) {
        progress.go_on()?;
        control.execute(&statement)?;
    }
    // Warehouses come last: if they exist, everything else does.
    load.warehouses(&mut control, warehouses)
}

impl Load<'_> {
    fn part(&self, control: &mut Control, part: usize) -> Result<(), Fault> {
        let random = &mut Random::new(self.seed, part as u64);
        let Some(part) = part.checked_sub(1) else { return self.items(control, random) };
        let warehouse = (part / PARTS) as i64 + 1;
        match part % PARTS {
            0 => self.stock(control, random, warehouse),
            1 => self.orders(control, random, warehouse),
            _ => self.customers(control, random, warehouse),
        }
    }

    fn rows(
        &self,
        control: &mut Control,
        table: &str,
        mut numbers: impl Iterator<Item = i64>,
        mut fill: impl FnMut(i64, &mut Params),
    ) -> Result<(), Fault> {
        let next = |row: &mut Params| numbers.next().map(|number| fill(number, row)).is_some();
        control.load(table, self.progress, next).map(drop)
    }

    fn items(&self, control: &mut Control, random: &mut Random) -> Result<(), Fault> {
        self.rows(control, "item", 1..=ITEMS, |item, row| {
            row.ints(&[item, random.between(1, 10_000)]);
            row.text_by(|text| letters(random, 14, 24, text));
            money::push(row, random.between(100, 10_000));
            row.text_by(|text| random::goods(random, text));
        })
    }

    fn stock(&self, control: &mut Control, random: &mut Random, warehouse: i64) -> Result<(), Fault> {
        self.rows(control, "stock", 1..=ITEMS, |item, row| {
            row.ints(&[item, warehouse, random.between(10, 100)]);
            for _ in 0..DISTRICTS {
                row.text_by(|text| letters(random, 24, 24, text));
            }
            row.ints(&[0; 3]);
            row.text_by(|text| random::goods(random, text));
        })
    }

    /// The districts of a warehouse, their customers, and the payment that each has made.
    fn customers(&self, control: &mut Control, random: &mut Random, warehouse: i64) -> Result<(), Fault> {
        self.rows(control, "district", 1..=DISTRICTS, |district, row| {
            row.ints(&[district, warehouse]);
            row.text_by(|text| letters(random, 6, 10, text));
            address(random, row);
            money::push_rate(row, random.between(0, 2000));
            money::push(row, 30_000 * 100);
            row.int(CUSTOMERS + 1);
        })?;
        self.rows(control, "customer", 0..DISTRICTS * CUSTOMERS, |number, row| {
            self.customer(random, warehouse, number, row);
        })?;
        self.rows(control, "history", 0..DISTRICTS * CUSTOMERS, |number, row| {
            let district = number / CUSTOMERS + 1;
            row.ints(&[number % CUSTOMERS + 1, district, warehouse, district, warehouse]);
            row.text(&self.now);
            money::push(row, 10 * 100);
            row.text_by(|text| letters(random, 12, 24, text));
        })
    }

    fn customer(&self, random: &mut Random, warehouse: i64, number: i64, row: &mut Params) {
        let customer = number % CUSTOMERS + 1;
        row.ints(&[customer, number / CUSTOMERS + 1, warehouse]);
        row.text_by(|text| letters(random, 8, 16, text));
        row.text("OE");
        // Each name once, then random ones.
        let name = if customer <= 1000 { customer - 1 } else { random::loaded_name(random) };
        row.text_by(|text| random::last_name(name, text));
        address(random, row);
        row.text_by(|text| digits(random, 16, text));
        row.text(&self.now);
        row.text(if random.between(1, 10) == 1 { "BC" } else { "GC" });
        money::push(row, 50_000 * 100);
        money::push_rate(row, random.between(0, 5000));
        row.verbatim("-10.00");
        money::push(row, 10 * 100);
        row.ints(&[1, 0]);
        row.text_by(|text| letters(random, 300, 500, text));
    }

    /// Orders of all districts, one for each customer, with their lines and the new orders.
    fn orders(&self, control: &mut Control, random: &mut Random, warehouse: i64) -> Result<(), Fault> {
        let mut lines: Vec<i64> = (0..DISTRICTS * CUSTOMERS).map(|_| random.between(5, 15)).collect();
        let mut customers: Vec<i64> = (1..=CUSTOMERS).collect();
        self.rows(control, "orders", 0..DISTRICTS * CUSTOMERS, |number, row| {
            let at = number % CUSTOMERS;
            if at == 0 {
                shuffle(random, &mut customers);
            }
            row.ints(&[at + 1, number / CUSTOMERS + 1, warehouse, customers[at as usize]]);
            row.text(&self.now);
            if at < DELIVERED {
                row.int(random.between(1, 10))
            } else {
                row.null()
            }
            row.ints(&[lines[number as usize], 1]);
        })?;
        let numbers = lines
            .drain(..)
            .zip(0..)
            .flat_map(|(count, number)| (1..=count).map(move |line| number * 16 + line));
        self.rows(control, "order_line", numbers, |number, row| {
            let (number, line) = (number / 16, number % 16);
            let at = number % CUSTOMERS;
            let (district, item) = (number / CUSTOMERS + 1, random.between(1, ITEMS));
            row.ints(&[at + 1, district, warehouse, line, item, warehouse]);
            if at < DELIVERED {
                row.text(&self.now)
            } else {
                row.null()
            }
            row.int(5);
            money::push(row, if at < DELIVERED { 0 } else { random.between(1, 999_999) });
            row.text_by(|text| letters(random, 24, 24, text));
        })?;
        let new = (0..DISTRICTS * CUSTOMERS).filter(|number| number % CUSTOMERS >= DELIVERED);
        self.rows(control, "new_order", new, |number, row| {
            row.ints(&[number % CUSTOMERS + 1, number / CUSTOMERS + 1, warehouse]);
        })
    }

    fn warehouses(&self, control: &mut Control, warehouses: i64) -> Result<(), Fault> {
        let random = &mut Random::new(self.seed, u64::MAX);
        self.rows(control, "warehouse", 1..=warehouses, |warehouse, row| {
            row.int(warehouse);
            row.text_by(|text| letters(random, 6, 10, text));
            address(random, row);
            money::push_rate(row, random.between(0, 2000));
            money::push(row, 300_000 * 100);
        })
    }
}

/// Two streets, a city, a state and a zip code (4.3.2.7).
fn address(random: &mut Random, row: &mut Params) {
    for _ in ["street 1", "street 2", "city"] {
        row.text_by(|text| letters(random, 10, 20, text));
    }
    row.text_by(|text| letters(random, 2, 2, text));
    row.text_by(|zip| {
        digits(random, 4, zip);
        zip.push_str("11111");
    });
}

pub(super) fn shuffle<T>(random: &mut Random, values: &mut [T]) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.between(0, last as i64) as usize);
    }
}
