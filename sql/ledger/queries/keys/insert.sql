-- A new key by the hash of its secret.
INSERT INTO api_keys (key_id, platform_id, livemode, secret_hash, label, scopes, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
