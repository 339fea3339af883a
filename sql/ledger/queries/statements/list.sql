-- Recorded statements of a platform after a place in its log; an empty customer and the least hour ask for all.
SELECT s.statement_id, s.platform_id, s.customer_id, s.meter_id, s.definition_hash, s.hour, s.piece_start, s.piece_end, s.revision, s.count, s.sum, s.root, s.statement_hash, s.log_index, s.run_id, r.recorded_at
FROM statements s JOIN seal_runs r ON r.run_id = s.run_id
WHERE s.platform_id = $1 AND s.log_index > $2 AND r.recorded_at IS NOT NULL
  AND ($3 = '' OR s.customer_id = $3) AND ($4 = 0 OR s.hour = $5)
ORDER BY s.log_index LIMIT $6
