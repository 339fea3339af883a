-- Adds a signed head.
INSERT INTO heads (platform_id, size, root, at, kid, signature) VALUES ($1, $2, $3, $4, $5, $6)
