-- The events of one turn, every stored copy and content.
SELECT ?fields
FROM usage_events
WHERE platform = {platform:String} AND report_key = unhex({report_key:String})
    AND hour IN (SELECT hour FROM reports WHERE platform = {platform:String} AND report_key = unhex({report_key:String}))
ORDER BY epoch, seq
LIMIT 1 BY event_id, content_hash, epoch, seq
