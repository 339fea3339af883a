-- What the store holds of each journal up to a cut, each position and content once: compared with the journals' own counts.
SELECT epoch, count() AS events, sum(toUInt128(tokens)) AS tokens, sum(toUInt64(frames_served)) AS frames
FROM
(
    SELECT epoch, seq, event_id, content_hash, tokens, frames_served
    FROM usage_events
    WHERE platform = {platform:String} AND hour = {hour:Int64}
        AND seq <= arrayElement({upper_seqs:Array(UInt64)}, indexOf({upper_epochs:Array(UInt64)}, epoch))
    GROUP BY epoch, seq, event_id, content_hash, tokens, frames_served
)
GROUP BY epoch
ORDER BY epoch
