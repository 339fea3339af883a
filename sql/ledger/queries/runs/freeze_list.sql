-- The frozen hours of a platform.
SELECT platform_id, hour, reason, detail, found_at FROM hour_freezes WHERE platform_id = $1 ORDER BY hour
