-- All placements whose minute lies in a range, of one customer and event name at the payment service.
SELECT
    placement_id, platform_id, customer_id, meter_id, statement_id, statement_hash, hour, piece_start, piece_end,
    revision, part, n, stripe_account, stripe_customer, stripe_meter, event_name, amount, bill_start, bill_end,
    carried, minute, event_at, slot, minute_before, identifier, state, attempt, first_attempt_at, last_attempt_at,
    exists_said, reason, request_id, seen, seen_at, without_at, settled, invoice_id, created_at, updated_at
FROM placements
WHERE stripe_account = $1 AND stripe_customer = $2 AND event_name = $3 AND minute >= $4 AND minute < $5
ORDER BY minute, slot
