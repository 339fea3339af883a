-- All cumulative counts of a platform's hour, by epoch and position (primary key prefix).
SELECT epoch_id, platform_id, hour, seq, events, tokens, frames FROM epoch_counts
WHERE platform_id = $1 AND hour = $2 ORDER BY epoch_id, seq
