-- The invoices of a platform, page by page.
SELECT
    platform_id, invoice_id, customer_id, stripe_customer, subscription_id, state, reason, verdict, expected, billed,
    root, created_at, found_at, finalizes_at, auto_advance_off_at, closed_at, finalised_at, updated_at
FROM invoices
WHERE platform_id = $1 AND invoice_id > $2 ORDER BY invoice_id LIMIT $3
