-- The right edge of a platform's log.
SELECT size, frontier FROM log_frontiers WHERE platform_id = $1
