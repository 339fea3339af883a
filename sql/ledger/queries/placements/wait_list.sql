-- Statements that wait, page by page.
SELECT platform_id, statement_id, customer_id, meter_id, sum, reason, since FROM sync_waits
WHERE platform_id = $1 AND statement_id > $2 ORDER BY statement_id LIMIT $3
