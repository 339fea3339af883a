-- Runs of a platform, newest hours first, for the page of windows.
SELECT run_id, platform_id, hour, ordinal, cut_id, events, silent, deferred, committed_at, recorded_at FROM seal_runs
WHERE platform_id = $1 AND (hour < $2 OR (hour = $2 AND ordinal < $3)) ORDER BY hour DESC, ordinal DESC LIMIT $4
