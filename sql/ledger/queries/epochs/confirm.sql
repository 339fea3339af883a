-- Moves an epoch's confirmed position and instant forward, never back.
UPDATE epochs SET
    confirmed_seq = CASE WHEN $2 > confirmed_seq THEN $2 ELSE confirmed_seq END,
    confirmed_through = CASE WHEN $3 > confirmed_through THEN $3 ELSE confirmed_through END,
    heartbeat_at = CASE WHEN $4 > heartbeat_at THEN $4 ELSE heartbeat_at END
WHERE epoch_id = $1
