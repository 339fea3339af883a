-- For each platform, hour and epoch the counts as of the greatest position at or below a cut's: what a run must consume.
SELECT c.epoch_id, c.platform_id, c.hour, c.seq, c.events, c.tokens, c.frames
FROM epoch_counts c
JOIN (
    SELECT k.platform_id, k.hour, k.epoch_id, MAX(k.seq) AS seq
    FROM epoch_counts k JOIN cut_positions p ON p.epoch_id = k.epoch_id AND p.cut_id = $1
    WHERE k.seq <= p.seq
    GROUP BY k.platform_id, k.hour, k.epoch_id
) last ON last.platform_id = c.platform_id AND last.hour = c.hour AND last.epoch_id = c.epoch_id AND last.seq = c.seq
ORDER BY c.platform_id, c.hour, c.epoch_id
