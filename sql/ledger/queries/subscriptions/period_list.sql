-- All periods of one customer and meter that were ever read.
SELECT
    platform_id, customer_id, meter_id, item_id, period_start, period_end, subscription_id, price_id, repriced_at,
    first_read_at, last_read_at, invoice_id, closed_at, root, placements_count, placements_sum
FROM bill_periods WHERE platform_id = $1 AND customer_id = $2 AND meter_id = $3
ORDER BY period_start, item_id
