-- Closes a folder's former epochs at the last position found in it.
UPDATE epochs SET state = 'closed', end_seq = $3 WHERE folder_id = $1 AND epoch_id = $2 AND state = 'open'
