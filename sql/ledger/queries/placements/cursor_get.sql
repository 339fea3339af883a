-- How far a platform's log has been looked at.
SELECT log_index FROM sync_cursors WHERE platform_id = $1
