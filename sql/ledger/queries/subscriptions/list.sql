-- When each customer and meter of a platform was last read.
SELECT customer_id, meter_id, read_at FROM subscriptions WHERE platform_id = $1
