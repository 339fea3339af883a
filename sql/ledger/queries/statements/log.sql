-- A platform's statements in the order of its log, after a place, up to the first whose run is not recorded.
SELECT s.statement_id, s.platform_id, s.customer_id, s.meter_id, s.definition_hash, s.hour, s.piece_start, s.piece_end, s.revision, s.count, s.sum, s.root, s.statement_hash, s.log_index, s.run_id, r.recorded_at
FROM statements s JOIN seal_runs r ON r.run_id = s.run_id
WHERE s.platform_id = $1 AND s.log_index > $2 ORDER BY s.log_index LIMIT $3
