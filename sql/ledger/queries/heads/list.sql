-- A platform's heads below a size, the newest first, as far as every run below them is recorded beside the usage.
SELECT size, root, at, kid, signature FROM heads
WHERE platform_id = $1 AND size < $2
  AND size < COALESCE((SELECT MIN(s.log_index) FROM seal_runs r JOIN statements s ON s.run_id = r.run_id
      WHERE r.platform_id = $1 AND r.recorded_at IS NULL), 9223372036854775807)
ORDER BY size DESC LIMIT $3
