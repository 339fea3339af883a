-- An hour whose books agree again.
DELETE FROM hour_freezes WHERE platform_id = $1 AND hour = $2
