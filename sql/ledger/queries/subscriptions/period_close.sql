-- Closes a period: its placements and their root are fixed.
UPDATE bill_periods SET closed_at = $6, root = $7, placements_count = $8, placements_sum = $9
WHERE platform_id = $1 AND customer_id = $2 AND meter_id = $3 AND item_id = $4 AND period_start = $5 AND closed_at IS NULL
