-- Locks the row of a name until the transaction ends.
UPDATE leases SET fence = fence WHERE name = $1
