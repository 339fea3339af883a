-- All public keys, oldest first.
SELECT kid, family, public_key, created_at FROM public_keys ORDER BY created_at, kid
