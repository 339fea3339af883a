-- Writes down a new placement. A second one for the same part, identifier or minute is refused by its constraint.
INSERT INTO placements (
    placement_id, platform_id, customer_id, meter_id, statement_id, statement_hash, hour, piece_start, piece_end,
    revision, part, n, stripe_account, stripe_customer, stripe_meter, event_name, amount, bill_start, bill_end,
    carried, minute, event_at, slot, minute_before, identifier, state, attempt, first_attempt_at, last_attempt_at,
    exists_said, reason, request_id, seen, seen_at, without_at, settled, invoice_id, created_at, updated_at
) VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
    $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39
)
