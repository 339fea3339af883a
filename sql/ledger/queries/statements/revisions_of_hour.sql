-- The last revision of each piece of a platform's hour.
SELECT customer_id, meter_id, piece_start, MAX(revision) AS revision FROM statements
WHERE platform_id = $1 AND hour = $2 GROUP BY customer_id, meter_id, piece_start
