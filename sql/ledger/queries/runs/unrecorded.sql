-- Committed runs whose record is not beside the usage yet, oldest first (index seal_runs_unrecorded).
SELECT run_id, platform_id, hour, ordinal, cut_id, events, silent, deferred, committed_at, recorded_at FROM seal_runs
WHERE recorded_at IS NULL ORDER BY committed_at, run_id LIMIT $1
