-- Records of a stream after a number, in order (primary key).
SELECT seq, body, recorded_at FROM records WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3
