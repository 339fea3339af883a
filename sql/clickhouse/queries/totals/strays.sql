-- Rows of a platform that no journal accounts for: of an epoch that was never registered, or two contents at one position.
SELECT hour, customer, event_id, epoch, seq
FROM usage_events
WHERE platform = {platform:String}
    AND (NOT has({epochs:Array(UInt64)}, epoch)
        OR (epoch, seq) IN
        (
            SELECT epoch, seq
            FROM usage_events
            WHERE platform = {platform:String}
            GROUP BY epoch, seq
            HAVING uniqExact(event_id, content_hash, customer, tokens) > 1
        ))
ORDER BY epoch, seq
LIMIT 1
