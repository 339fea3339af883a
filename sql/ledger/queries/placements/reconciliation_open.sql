-- The reconciled hours of a platform that do not agree.
SELECT platform_id, customer_id, meter_id, hour, placed, seen, unsettled, checked_at FROM reconciliations
WHERE platform_id = $1 AND (placed <> seen OR unsettled > 0) ORDER BY hour, customer_id, meter_id LIMIT $2
