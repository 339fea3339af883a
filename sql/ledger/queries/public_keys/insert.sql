-- Keeps a public key for ever.
INSERT INTO public_keys (kid, family, public_key, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (kid) DO NOTHING
