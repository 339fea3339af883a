-- All periods of one subscription item.
SELECT
    platform_id, customer_id, meter_id, item_id, period_start, period_end, subscription_id, price_id, repriced_at,
    first_read_at, last_read_at, invoice_id, closed_at, root, placements_count, placements_sum
FROM bill_periods WHERE platform_id = $1 AND item_id = $2
ORDER BY period_start, meter_id
