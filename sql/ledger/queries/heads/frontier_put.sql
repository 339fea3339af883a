-- Moves the right edge; only from the size that the writer appended to.
INSERT INTO log_frontiers (platform_id, size, frontier) VALUES ($1, $2, $3)
ON CONFLICT (platform_id) DO UPDATE SET size = excluded.size, frontier = excluded.frontier WHERE log_frontiers.size = $4
