-- Links a customer to a Stripe customer, listing it if it is new. The unique index refuses a Stripe customer that is taken.
INSERT INTO customers (platform_id, customer_id, stripe_account, stripe_customer, created_at, linked_at)
VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (platform_id, customer_id) DO UPDATE
SET stripe_account = excluded.stripe_account, stripe_customer = excluded.stripe_customer, linked_at = excluded.linked_at
