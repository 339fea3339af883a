-- One run.
SELECT run_id, platform_id, hour, ordinal, cut_id, events, silent, deferred, committed_at, recorded_at FROM seal_runs WHERE run_id = $1
