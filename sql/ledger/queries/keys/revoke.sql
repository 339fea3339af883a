-- Revokes a key once; the first time stands.
UPDATE api_keys SET revoked_at = $3 WHERE platform_id = $1 AND key_id = $2 AND revoked_at IS NULL
