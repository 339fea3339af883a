-- The invoices that are in our hands and not finalised.
SELECT
    platform_id, invoice_id, customer_id, stripe_customer, subscription_id, state, reason, verdict, expected, billed,
    root, created_at, found_at, finalizes_at, auto_advance_off_at, closed_at, finalised_at, updated_at
FROM invoices
WHERE platform_id = $1 AND state IN ('found', 'closed', 'held') ORDER BY created_at, invoice_id
