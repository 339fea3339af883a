-- Notes why a statement is not placed; how long it has waited stays.
INSERT INTO sync_waits (platform_id, statement_id, customer_id, meter_id, sum, reason, since) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (statement_id) DO UPDATE SET reason = EXCLUDED.reason
