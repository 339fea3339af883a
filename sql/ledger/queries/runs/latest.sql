-- The last run of every hour of every platform.
SELECT run_id, platform_id, hour, ordinal, cut_id, events, silent, deferred, committed_at, recorded_at FROM seal_runs r
WHERE ordinal = (SELECT MAX(x.ordinal) FROM seal_runs x WHERE x.platform_id = r.platform_id AND x.hour = r.hour)
ORDER BY platform_id, hour
