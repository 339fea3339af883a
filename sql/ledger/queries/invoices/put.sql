-- Notes what is known of an invoice.
INSERT INTO invoices (
    platform_id, invoice_id, customer_id, stripe_customer, subscription_id, state, reason, verdict, expected, billed,
    root, created_at, found_at, finalizes_at, auto_advance_off_at, closed_at, finalised_at, updated_at
) VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18
)
ON CONFLICT (platform_id, invoice_id) DO UPDATE SET
    subscription_id = EXCLUDED.subscription_id, state = EXCLUDED.state, reason = EXCLUDED.reason,
    verdict = EXCLUDED.verdict, expected = EXCLUDED.expected, billed = EXCLUDED.billed, root = EXCLUDED.root,
    finalizes_at = EXCLUDED.finalizes_at, auto_advance_off_at = EXCLUDED.auto_advance_off_at,
    closed_at = EXCLUDED.closed_at, finalised_at = EXCLUDED.finalised_at, updated_at = EXCLUDED.updated_at
