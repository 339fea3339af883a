-- The runs of a platform's hour in order of commit.
SELECT run_id, platform_id, hour, ordinal, cut_id, events, silent, deferred, committed_at, recorded_at FROM seal_runs
WHERE platform_id = $1 AND hour = $2 ORDER BY ordinal
