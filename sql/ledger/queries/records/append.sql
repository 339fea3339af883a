-- Appends the next record of a stream; the primary key refuses a number that is taken, the condition one that is not next.
INSERT INTO records (stream, seq, body, recorded_at)
SELECT $1, $2, $3, $4 WHERE (SELECT COALESCE(MAX(seq), 0) FROM records WHERE stream = $1) = CAST($2 AS BIGINT) - 1
