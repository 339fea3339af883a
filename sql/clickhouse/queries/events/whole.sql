-- Every stored event of a platform's hour with its frames, each position and content once: what an audit reads.
SELECT ?fields
FROM usage_events
WHERE platform = {platform:String} AND hour = {hour:Int64}
ORDER BY customer, event_id, content_hash, epoch, seq
LIMIT 1 BY customer, event_id, content_hash, epoch, seq
