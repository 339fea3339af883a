-- The secret of a customer.
SELECT secret FROM erasure_keys WHERE platform_id = $1 AND customer_id = $2
