-- The counts of a platform's hours, each epoch's last, as far as it is confirmed.
SELECT c.epoch_id, c.platform_id, c.hour, c.seq, c.events, c.tokens, c.frames
FROM epoch_counts c
WHERE c.platform_id = $1 AND c.hour >= $2 AND c.hour < $3
  AND c.seq = (SELECT MAX(k.seq) FROM epoch_counts k
      WHERE k.platform_id = c.platform_id AND k.hour = c.hour AND k.epoch_id = c.epoch_id)
ORDER BY c.hour, c.epoch_id
