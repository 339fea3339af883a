-- One customer by its primary key.
SELECT platform_id, customer_id, stripe_account, stripe_customer, created_at, linked_at
FROM customers WHERE platform_id = $1 AND customer_id = $2
