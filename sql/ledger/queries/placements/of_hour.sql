-- All placements of the pieces of one customer, meter and hour.
SELECT
    placement_id, platform_id, customer_id, meter_id, statement_id, statement_hash, hour, piece_start, piece_end,
    revision, part, n, stripe_account, stripe_customer, stripe_meter, event_name, amount, bill_start, bill_end,
    carried, minute, event_at, slot, minute_before, identifier, state, attempt, first_attempt_at, last_attempt_at,
    exists_said, reason, request_id, seen, seen_at, without_at, settled, invoice_id, created_at, updated_at
FROM placements
WHERE platform_id = $1 AND customer_id = $2 AND meter_id = $3 AND hour = $4
ORDER BY piece_start, revision, part, n
