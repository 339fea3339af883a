-- One platform by its primary key.
SELECT platform_id, livemode, created_at, stripe_account, lateness_us, seal_deadline_us, accept_back_us, strict_customers, sync_mode
FROM platforms WHERE platform_id = $1
