-- What the runs of an hour deferred.
SELECT r.ordinal, d.customer_id, d.meter_id FROM seal_deferrals d JOIN seal_runs r ON r.run_id = d.run_id
WHERE r.platform_id = $1 AND r.hour = $2 ORDER BY r.ordinal, d.customer_id, d.meter_id
