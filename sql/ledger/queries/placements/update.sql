-- Moves a placement from the state and attempt that the caller saw. Amount, minute and identifier are not among what changes.
UPDATE placements SET
    state = $4, attempt = $5, first_attempt_at = $6, last_attempt_at = $7, exists_said = $8, reason = $9, request_id = $10,
    seen = $11, seen_at = $12, without_at = $13, settled = $14, updated_at = $15
WHERE placement_id = $1 AND state = $2 AND attempt = $3
