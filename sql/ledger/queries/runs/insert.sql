-- Adds a run; the ordinal that its planner saw as the next must still be it (unique).
INSERT INTO seal_runs (run_id, platform_id, hour, ordinal, cut_id, events, silent, deferred, committed_at, recorded_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, NULL)
