-- Every stored copy and content of one event of a platform, the earliest acceptance first.
SELECT ?fields
FROM usage_events
WHERE platform = {platform:String} AND event_id = unhex({event_id:String})
    AND (hour, customer) IN
    (
        SELECT hour, customer FROM event_keys WHERE event_id = unhex({event_id:String}) AND platform = {platform:String}
    )
ORDER BY received_at, epoch, seq
LIMIT 1 BY content_hash, epoch, seq
