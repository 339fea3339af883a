-- Links a customer to a Stripe customer, listing it if it is new. The unique index refuses a Stripe customer that is taken; a link is changed only as
-- long as no billing period of the former one is known, which would bill the new one's usage.
INSERT INTO customers (platform_id, customer_id, stripe_account, stripe_customer, created_at, linked_at)
VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (platform_id, customer_id) DO UPDATE
SET stripe_account = excluded.stripe_account, stripe_customer = excluded.stripe_customer,
    linked_at = CASE
        WHEN customers.stripe_account = excluded.stripe_account AND customers.stripe_customer = excluded.stripe_customer
        THEN customers.linked_at ELSE excluded.linked_at
    END
WHERE customers.stripe_customer IS NULL
    OR (customers.stripe_account = excluded.stripe_account AND customers.stripe_customer = excluded.stripe_customer)
    OR NOT EXISTS (
        SELECT 1 FROM bill_periods WHERE bill_periods.platform_id = $1 AND bill_periods.customer_id = $2
    )
