-- Takes a lease that is free, expired or ours; each taking has a greater fence.
UPDATE leases SET holder = $2, fence = fence + 1, expires_at = $4 WHERE name = $1 AND (expires_at <= $3 OR holder = $2)
RETURNING fence
