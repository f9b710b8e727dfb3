-- 3.3.2.1: W_YTD = sum(D_YTD)
SELECT count(*) FROM warehouse JOIN (SELECT d_w_id, sum(d_ytd) AS ytd FROM district GROUP BY d_w_id) d
    ON d_w_id = w_id WHERE w_ytd <> ytd;

-- 3.3.2.2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)
SELECT count(*) FROM district
    LEFT JOIN (SELECT o_w_id, o_d_id, max(o_id) AS last FROM orders GROUP BY o_w_id, o_d_id) o
    ON o_w_id = d_w_id AND o_d_id = d_id
    LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS newest FROM new_order GROUP BY no_w_id, no_d_id) n
    ON no_w_id = d_w_id AND no_d_id = d_id
    WHERE last IS NULL OR d_next_o_id - 1 <> last OR (newest IS NOT NULL AND last <> newest);

-- 3.3.2.3: max(NO_O_ID) - min(NO_O_ID) + 1 = number of new orders, by district
SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 - count(*) AS gap FROM new_order
    GROUP BY no_w_id, no_d_id) n WHERE gap <> 0;

-- 3.3.2.4: sum(O_OL_CNT) = number of order lines, by district
SELECT count(*) FROM
    (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS told FROM orders GROUP BY o_w_id, o_d_id) o
    LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) l
    ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE told <> coalesce(found, 0);

-- 3.3.2.5: O_CARRIER_ID is null where the order is a new order, only there
SELECT count(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
    WHERE (o_carrier_id IS NULL AND no_o_id IS NULL) OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL);

-- 3.3.2.6: O_OL_CNT = number of lines, by order
SELECT count(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS found FROM order_line
    GROUP BY ol_w_id, ol_d_id, ol_o_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE o_ol_cnt <> coalesce(found, 0);

-- 3.3.2.7: OL_DELIVERY_D is null where the order's O_CARRIER_ID is, only there
SELECT count(*) FROM order_line JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
    WHERE (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL)
    OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL);

-- 3.3.2.8: W_YTD = sum(H_AMOUNT)
SELECT count(*) FROM warehouse LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history
    GROUP BY h_w_id) h ON h_w_id = w_id WHERE paid IS NULL OR w_ytd <> paid;

-- 3.3.2.9: D_YTD = sum(H_AMOUNT)
SELECT count(*) FROM district LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history
    GROUP BY h_w_id, h_d_id) h ON h_w_id = d_w_id AND h_d_id = d_id WHERE paid IS NULL OR d_ytd <> paid;

-- 3.3.2.10: C_BALANCE = sum(OL_AMOUNT) of what was delivered - sum(H_AMOUNT)
SELECT count(*) FROM customer
    LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS got FROM orders
    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
    ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
    LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history
    GROUP BY h_c_w_id, h_c_d_id, h_c_id) h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
    WHERE c_balance <> coalesce(got, 0) - coalesce(paid, 0);

-- 3.3.2.11: orders - new orders = 2100 and what customers have got since, by district
-- (The clause applies to the initial data, before any delivery.)
SELECT count(*) FROM
    (SELECT o_w_id, o_d_id, count(*) AS ordered FROM orders GROUP BY o_w_id, o_d_id) o
    JOIN (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS delivered FROM customer GROUP BY c_w_id, c_d_id) c
    ON c_w_id = o_w_id AND c_d_id = o_d_id
    LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS waiting FROM new_order GROUP BY no_w_id, no_d_id) n
    ON no_w_id = o_w_id AND no_d_id = o_d_id WHERE ordered - coalesce(waiting, 0) <> 2100 + delivered;

-- 3.3.2.12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) of what was delivered
SELECT count(*) FROM customer
    LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS got FROM orders
    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) o
    ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
    WHERE c_balance + c_ytd_payment <> coalesce(got, 0);
