-- Every stored copy and content of one event of a platform, the earliest acceptance first.
SELECT
    platform, hour, customer, event_id, content_hash, epoch, seq, kind, provider, request, turn, report_key, report_hash, as_of,
    received_at, tokens, frames_served, frames_rejected, salt, warnings, frames.frame_id, frames.digest_kind, frames.digest_sha256,
    frames.digest_other, frames.cost, frames.commitment
FROM usage_events
WHERE platform = {platform:String} AND event_id = unhex({event_id:String})
    AND (hour, customer) IN
    (
        SELECT hour, customer FROM event_keys WHERE event_id = unhex({event_id:String}) AND platform = {platform:String}
    )
ORDER BY received_at, epoch, seq
LIMIT 1 BY content_hash, epoch, seq
