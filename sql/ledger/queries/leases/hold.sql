-- True if the lease is still ours and not expired. It writes, so that the row is locked until the transaction ends.
UPDATE leases SET holder = holder WHERE name = $1 AND holder = $2 AND fence = $3 AND expires_at > $4 RETURNING fence
