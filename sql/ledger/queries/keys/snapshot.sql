-- Every key that may still be used: what ingest checks against.
SELECT key_id, platform_id, livemode, secret_hash, label, scopes, created_at, expires_at, revoked_at, last_used_at
FROM api_keys WHERE revoked_at IS NULL
