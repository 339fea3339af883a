-- Freezes an hour, or says anew why it is frozen.
INSERT INTO hour_freezes (platform_id, hour, reason, detail, found_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (platform_id, hour) DO UPDATE SET reason = excluded.reason, detail = excluded.detail
