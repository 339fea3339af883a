-- The first position of a journal up to its confirmed end that is not stored, and how many are.
SELECT minIf(before + 1, seq != before + 1) AS gap, max(seq) AS last, count() AS positions
FROM
(
    SELECT seq, lagInFrame(seq, 1, toUInt64(0)) OVER (ORDER BY seq ASC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS before
    FROM
    (
        SELECT seq FROM usage_events WHERE epoch = {epoch:UInt64} AND seq <= {end:UInt64}
        UNION DISTINCT
        SELECT last_seq AS seq FROM reports WHERE epoch = {epoch:UInt64} AND last_seq <= {end:UInt64}
    )
)
