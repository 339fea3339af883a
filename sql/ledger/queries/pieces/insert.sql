-- Fixes a piece; what the first run cut stays.
INSERT INTO pieces (platform_id, customer_id, meter_id, hour, piece_start, piece_end) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (platform_id, hour, customer_id, meter_id, piece_start) DO NOTHING
