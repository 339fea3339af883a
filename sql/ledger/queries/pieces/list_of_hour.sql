-- The pieces of a platform's hour.
SELECT customer_id, meter_id, piece_start, piece_end FROM pieces
WHERE platform_id = $1 AND hour = $2 ORDER BY customer_id, meter_id, piece_start
