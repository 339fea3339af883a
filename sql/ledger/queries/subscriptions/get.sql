-- The last reading for one customer and meter.
SELECT read_at, state FROM subscriptions WHERE platform_id = $1 AND customer_id = $2 AND meter_id = $3
