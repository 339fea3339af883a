-- Notes a reading of a customer's subscriptions; an older reading never replaces a newer one.
INSERT INTO subscriptions (platform_id, customer_id, meter_id, read_at, state) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (platform_id, customer_id, meter_id) DO UPDATE SET read_at = EXCLUDED.read_at, state = EXCLUDED.state
WHERE subscriptions.read_at <= EXCLUDED.read_at
