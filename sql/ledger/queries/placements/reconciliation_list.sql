-- The reconciled hours of a platform, newest first, page by page.
SELECT platform_id, customer_id, meter_id, hour, placed, seen, unsettled, checked_at FROM reconciliations
WHERE platform_id = $1 AND hour < $2 ORDER BY hour DESC, customer_id, meter_id LIMIT $3
