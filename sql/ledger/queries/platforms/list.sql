-- All platforms by name.
SELECT platform_id, livemode, created_at, stripe_account, lateness_us, seal_deadline_us, accept_back_us, strict_customers, sync_mode
FROM platforms ORDER BY platform_id
