-- Moves the end of a lease that is still ours.
UPDATE leases SET expires_at = $5 WHERE name = $1 AND holder = $2 AND fence = $3 AND expires_at > $4 RETURNING fence
