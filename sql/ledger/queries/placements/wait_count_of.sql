-- How many statements of one customer and meter wait.
SELECT COUNT(*) AS count FROM sync_waits WHERE platform_id = $1 AND customer_id = $2 AND meter_id = $3
