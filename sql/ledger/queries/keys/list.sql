-- The keys of a platform, oldest first.
SELECT key_id, platform_id, livemode, secret_hash, label, scopes, created_at, expires_at, revoked_at, last_used_at
FROM api_keys WHERE platform_id = $1 ORDER BY created_at, key_id
