//! Payment (2.5): a customer, from another warehouse in 15 of 100 cases, pays. A customer with bad
//! credit gets a note about it.

use super::home::{Home, Who};
use super::statements::Sql;
use super::{DISTRICTS, money};
use crate::client::Random;
use crate::workload::talk::{Ended, Talk};

/// Draws the inputs (2.5.1) and takes the steps of 2.5.2.2. `names` and `note` are buffers.
pub(super) async fn payment(
    home: &Home,
    talk: &Talk,
    random: &mut Random,
    [names, note]: &mut [String; 2],
) -> Result<Sql, Ended> {
    let (warehouse, district) = (home.warehouse, random.between(1, DISTRICTS));
    let (customer_warehouse, customer_district) = if random.between(1, 100) <= 85 {
        (warehouse, district)
    } else {
        (home.other(random), random.between(1, DISTRICTS))
    };
    let who = Who::draw(random);
    // In cents.
    let amount = random.between(100, 500_000);

    // H_DATA: the names of warehouse and district.
    names.clear();
    talk.run_with(Sql::PayWarehouse, |params| {
        money::push(params, amount);
        params.int(warehouse);
    })
    .await?;
    talk.run(Sql::Warehouse, &[warehouse]).await?;
    talk.read(|reply| reply.text(0, 5).map(|name| names.push_str(name))).ok_or("a warehouse")?;
    talk.run_with(Sql::PayDistrict, |params| {
        money::push(params, amount);
        params.ints(&[warehouse, district]);
    })
    .await?;
    talk.run(Sql::District, &[warehouse, district]).await?;
    names.push_str("    ");
    talk.read(|reply| reply.text(0, 5).map(|name| names.push_str(name))).ok_or("a district")?;

    let customer = who.find(customer_warehouse, customer_district, talk).await?;
    let key = [customer_warehouse, customer_district, customer];
    talk.run(Sql::Customer, &key).await?;
    let about = [customer, customer_district, customer_warehouse, district, warehouse];
    let bad = talk.read(|reply| {
        let (credit, data) = reply.text(0, 10).zip(reply.text(0, 14))?;
        write_note(&about, amount, data, note);
        Some(credit == "BC")
    });
    let bad = bad.ok_or("a customer")?;
    let pay = if bad { Sql::PayBadCustomer } else { Sql::PayCustomer };
    talk.run_with(pay, |params| {
        money::push(params, amount);
        money::push(params, amount);
        if bad {
            params.text(note);
        }
        params.ints(&key);
    })
    .await?;
    talk.run_with(Sql::InsertHistory, |params| {
        params.ints(&about);
        money::push(params, amount);
        params.text(names);
    })
    .await?;
    Ok(Sql::Commit)
}

/// Writes C_DATA with a payment in front, cut to 500 characters.
fn write_note(about: &[i64], amount: i64, data: &str, note: &mut String) {
    note.clear();
    for value in about.iter().chain([&amount]) {
        note.push_str(itoa::Buffer::new().format(*value));
        note.push(' ');
    }
    note.push_str(data);
    note.truncate(note.floor_char_boundary(500));
}
