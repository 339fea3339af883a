-- Moves the place in a platform's log on, never back.
INSERT INTO sync_cursors (platform_id, log_index) VALUES ($1, $2)
ON CONFLICT (platform_id) DO UPDATE SET log_index = EXCLUDED.log_index WHERE sync_cursors.log_index < EXCLUDED.log_index
