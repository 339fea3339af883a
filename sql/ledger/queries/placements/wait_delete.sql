-- A statement waits no longer.
DELETE FROM sync_waits WHERE statement_id = $1
