-- The reconciled hours of a platform after a row, newest hour first, page by page.
SELECT platform_id, customer_id, meter_id, hour, placed, seen, unsettled, checked_at FROM reconciliations
WHERE platform_id = $1
    AND (hour < $2 OR (hour = $2 AND (customer_id > $3 OR (customer_id = $3 AND meter_id > $4))))
ORDER BY hour DESC, customer_id, meter_id LIMIT $5
