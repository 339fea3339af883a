-- Gives a lease back; the fence stays.
UPDATE leases SET holder = '', expires_at = 0 WHERE name = $1 AND holder = $2 AND fence = $3
