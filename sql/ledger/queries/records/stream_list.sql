-- Streams of an owner after a name, in order, each with its first record (both by primary key).
SELECT s.stream AS stream, r.seq AS seq, r.body AS body, r.recorded_at AS recorded_at
FROM record_streams s JOIN records r ON r.stream = s.stream AND r.seq = 1
WHERE s.owner = $1 AND s.stream > $2 ORDER BY s.stream LIMIT $3
