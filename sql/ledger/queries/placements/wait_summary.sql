-- How many statements wait for each reason, and since when the oldest does.
SELECT reason, COUNT(*) AS count, MIN(since) AS oldest FROM sync_waits WHERE platform_id = $1 GROUP BY reason ORDER BY reason
