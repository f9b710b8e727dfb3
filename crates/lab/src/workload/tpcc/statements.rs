//! The statements of all transactions, the same on both dialects.

use crate::client::{Prepare, Statement, Wanted};
use crate::client::{StatementId, Step};

/// Which statement: its place in [`all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sql {
    Begin,
    Commit,
    Rollback,
    CustomersByName,
    // New order (2.4.2).
    CustomerAndWarehouse,
    TakeOrderNumber,
    NextOrderNumber,
    InsertOrder,
    InsertNewOrder,
    Item,
    Stock,
    UpdateStock,
    InsertLine,
    // Payment (2.5.2).
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    Customer,
    PayCustomer,
    PayBadCustomer,
    InsertHistory,
    // Order status (2.6.2).
    CustomerBalance,
    LastOrder,
    Lines,
    // Delivery (2.7.4).
    OldestNewOrder,
    DeleteNewOrder,
    DeliverOrder,
    OrderCustomer,
    DeliverLines,
    OrderAmount,
    DeliverCustomer,
    // Stock level (2.8.2).
    OrderNumber,
    LowStock,
}

impl Sql {
    /// The step that runs it.
    pub(super) fn run(self) -> Step {
        Step::Run(StatementId(self as u16))
    }

    /// Its text, `?` for each parameter, and whether its reply is looked at.
    fn text(self) -> (&'static str, Wanted) {
        use Wanted::{Nothing, Rows};
        match self {
            Self::Begin => ("BEGIN", Nothing),
            Self::Commit => ("COMMIT", Nothing),
            Self::Rollback => ("ROLLBACK", Nothing),
            Self::CustomersByName => (
                "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
                Rows,
            ),
            Self::CustomerAndWarehouse => (
                "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
                 WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
                Rows,
            ),
            Self::TakeOrderNumber => {
                ("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE", Rows)
            }
            Self::NextOrderNumber => {
                ("UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?", Nothing)
            }
            Self::InsertOrder => (
                "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)",
                Nothing,
            ),
            Self::InsertNewOrder => {
                ("INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)", Nothing)
            }
            Self::Item => ("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?", Rows),
            Self::Stock => (
                "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, \
                 s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE",
                Rows,
            ),
            Self::UpdateStock => (
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?",
                Nothing,
            ),
            Self::InsertLine => (
                "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
                 ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                Nothing,
            ),
            Self::CustomerBalance => (
                "SELECT c_balance, c_first, c_middle, c_last FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                Rows,
            ),
            Self::LastOrder => (
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
                 WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
                Rows,
            ),
            Self::Lines => (
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                Rows,
            ),
            Self::OrderNumber => ("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?", Rows),
            Self::LowStock => (
                "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? \
                 AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?",
                Rows,
            ),
            other => other.changing(),
        }
    }

    /// Of payments and deliveries.
    fn changing(self) -> (&'static str, Wanted) {
        use Wanted::{Nothing, Rows};
        match self {
            Self::PayWarehouse => ("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?", Nothing),
            Self::Warehouse => (
                "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?",
                Rows,
            ),
            Self::PayDistrict => {
                ("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?", Nothing)
            }
            Self::District => (
                "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
                 WHERE d_w_id = ? AND d_id = ?",
                Rows,
            ),
            Self::Customer => (
                "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, \
                 c_credit, c_credit_lim, c_discount, c_balance, c_data FROM customer \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
                Rows,
            ),
            Self::PayCustomer => (
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                Nothing,
            ),
            Self::PayBadCustomer => (
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                Nothing,
            ),
            Self::InsertHistory => (
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, CURRENT_TIMESTAMP, ?, ?)",
                Nothing,
            ),
            Self::OldestNewOrder => (
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id LIMIT 1 FOR UPDATE",
                Rows,
            ),
            Self::DeleteNewOrder => {
                ("DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?", Nothing)
            }
            Self::DeliverOrder => {
                ("UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", Nothing)
            }
            Self::OrderCustomer => {
                ("SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?", Rows)
            }
            Self::DeliverLines => (
                "UPDATE order_line SET ol_delivery_d = CURRENT_TIMESTAMP \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                Nothing,
            ),
            Self::OrderAmount => (
                "SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
                Rows,
            ),
            Self::DeliverCustomer => (
                "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
                Nothing,
            ),
            other => unreachable!("{other:?} is among the first"),
        }
    }

    /// The statement numbered so.
    const ALL: [Self; 33] = [
        Self::Begin,
        Self::Commit,
        Self::Rollback,
        Self::CustomersByName,
        Self::CustomerAndWarehouse,
        Self::TakeOrderNumber,
        Self::NextOrderNumber,
        Self::InsertOrder,
        Self::InsertNewOrder,
        Self::Item,
        Self::Stock,
        Self::UpdateStock,
        Self::InsertLine,
        Self::PayWarehouse,
        Self::Warehouse,
        Self::PayDistrict,
        Self::District,
        Self::Customer,
        Self::PayCustomer,
        Self::PayBadCustomer,
        Self::InsertHistory,
        Self::CustomerBalance,
        Self::LastOrder,
        Self::Lines,
        Self::OldestNewOrder,
        Self::DeleteNewOrder,
        Self::DeliverOrder,
        Self::OrderCustomer,
        Self::DeliverLines,
        Self::OrderAmount,
        Self::DeliverCustomer,
        Self::OrderNumber,
        Self::LowStock,
    ];
}

const _: () = {
    let mut at = 0;
    while at < Sql::ALL.len() {
        assert!(Sql::ALL[at] as usize == at);
        at += 1;
    }
    assert!(Sql::LowStock as usize + 1 == Sql::ALL.len());
};

/// All, in order.
pub(super) fn all() -> Vec<Statement> {
    let statement = |sql: Sql| {
        let (text, wanted) = sql.text();
        let pieces = text.split('?').map(str::to_owned).collect();
        let ends = matches!(sql, Sql::Begin | Sql::Commit | Sql::Rollback);
        let prepare = if ends { Prepare::Never } else { Prepare::AtConnect };
        Statement { pieces, prepare, wanted }
    };
    Sql::ALL.into_iter().map(statement).collect()
}
