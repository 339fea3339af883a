-- Cumulative counts as of a position; told twice they are the same.
INSERT INTO epoch_counts (epoch_id, platform_id, hour, seq, events, tokens, frames) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (platform_id, hour, epoch_id, seq) DO NOTHING
