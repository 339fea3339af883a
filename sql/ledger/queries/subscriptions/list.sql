-- All last readings of a platform.
SELECT customer_id, meter_id, read_at, state FROM subscriptions WHERE platform_id = $1 ORDER BY customer_id, meter_id
