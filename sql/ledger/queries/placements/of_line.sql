-- All placements behind an invoice line: those that the closed period of its item holds.
SELECT
    placement_id, platform_id, customer_id, meter_id, statement_id, statement_hash, hour, piece_start, piece_end,
    revision, part, n, stripe_account, stripe_customer, stripe_meter, event_name, amount, bill_start, bill_end,
    carried, minute, event_at, slot, minute_before, identifier, state, attempt, first_attempt_at, last_attempt_at,
    exists_said, reason, request_id, seen, seen_at, without_at, settled, invoice_id, created_at, updated_at
FROM placements
WHERE placements.platform_id = $1 AND placements.invoice_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM invoice_lines line
    JOIN bill_periods period ON period.platform_id = line.platform_id AND period.item_id = line.item_id
        AND period.period_start = line.period_start AND period.meter_id = line.meter_id
    WHERE line.platform_id = $1 AND line.line_id = $2 AND line.invoice_id = placements.invoice_id
        AND period.customer_id = placements.customer_id AND period.meter_id = placements.meter_id
        AND period.period_start = placements.bill_start
)
ORDER BY piece_start, revision, part, n
