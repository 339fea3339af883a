-- The records of a platform's runs in order of commit.
SELECT platform, hour, run_id, committed_at, record
FROM seal_runs
WHERE platform = {platform:String}
ORDER BY committed_at, run_id
LIMIT 1 BY run_id
