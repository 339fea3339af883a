-- Offers a secret for a customer; the first one stands.
INSERT INTO erasure_keys (platform_id, customer_id, secret, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (platform_id, customer_id) DO NOTHING
