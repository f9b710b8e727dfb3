//! The statements of all transactions, the same on both dialects.

use crate::client::{Prepare, Statement, StatementId, Wanted};

/// Defines [`Sql`] and [`ALL`] from each statement's name, the wanted part of its reply, and its
/// text with `?` for each parameter.
macro_rules! statements {
    ($($name:ident $wanted:ident $text:literal)*) => {
        /// A statement: its index in [`ALL`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Sql { $($name),* }

        const ALL: &[(Sql, Wanted, &str)] = &[$((Sql::$name, Wanted::$wanted, $text)),*];
    };
}

statements! {
    Begin Nothing "BEGIN"
    Commit Nothing "COMMIT"
    Rollback Nothing "ROLLBACK"
    CustomersByName Rows
        "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
    // New order (2.4.2).
    CustomerAndWarehouse Rows
        "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
        WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?"
    TakeOrderNumber Rows
        "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE"
    NextOrderNumber Nothing "UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?"
    InsertOrder Nothing
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
        VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)"
    InsertNewOrder Nothing "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)"
    Item Rows "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?"
    Stock Rows
        "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
        s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE"
    UpdateStock Nothing
        "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
        s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?"
    InsertLine Nothing
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
        ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
    // Payment (2.5.2).
    PayWarehouse Nothing "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?"
    Warehouse Rows
        "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?"
    PayDistrict Nothing "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?"
    District Rows
        "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
        WHERE d_w_id = ? AND d_id = ?"
    Customer Rows
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
        c_credit, c_credit_lim, c_discount, c_balance, c_data FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE"
    PayCustomer Nothing
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    PayBadCustomer Nothing
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    InsertHistory Nothing
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
        VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)"
    // Order status (2.6.2).
    CustomerBalance Rows
        "SELECT c_balance, c_first, c_middle, c_last FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    LastOrder Rows
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
        WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1"
    Lines Rows
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    // Delivery (2.7.4).
    OldestNewOrder Rows
        "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
        ORDER BY no_o_id LIMIT 1 FOR UPDATE"
    DeleteNewOrder Nothing "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"
    DeliverOrder Nothing
        "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
    OrderCustomer Rows "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
    DeliverLines Nothing
        "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    OrderAmount Rows
        "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    DeliverCustomer Nothing
        "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    // Stock level (2.8.2).
    OrderNumber Rows "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?"
    LowStock Rows
        "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? \
        AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?"
}

impl From<Sql> for StatementId {
    fn from(sql: Sql) -> Self {
        Self(sql as u16)
    }
}

pub(super) fn all() -> Vec<Statement> {
    let statement = |&(sql, wanted, text): &(Sql, Wanted, &str)| {
        let ends = matches!(sql, Sql::Begin | Sql::Commit | Sql::Rollback);
        let prepare = if ends { Prepare::Never } else { Prepare::AtConnect };
        Statement::new(text, prepare, wanted)
    };
    ALL.iter().map(statement).collect()
}
