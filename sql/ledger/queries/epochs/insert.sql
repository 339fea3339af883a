-- The next epoch, by a number that was never used.
INSERT INTO epochs (epoch_id, folder_id, state, opened_at, confirmed_seq, confirmed_through, heartbeat_at)
SELECT COALESCE(MAX(epoch_id), 0) + 1, $1, 'open', $2, 0, $2, $2 FROM epochs
RETURNING epoch_id
