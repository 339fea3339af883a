-- A new platform; an existing one is a conflict.
INSERT INTO platforms (platform_id, livemode, created_at, stripe_account, lateness_us, seal_deadline_us, accept_back_us, strict_customers, sync_mode)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
