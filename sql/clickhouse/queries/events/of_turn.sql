-- The events of one turn, every stored copy and content.
SELECT
    platform, hour, customer, event_id, content_hash, epoch, seq, kind, provider, request, turn, report_key, report_hash, as_of,
    received_at, tokens, frames_served, frames_rejected, salt, warnings, frames.frame_id, frames.digest_kind, frames.digest_sha256,
    frames.digest_other, frames.cost, frames.commitment
FROM usage_events
WHERE platform = {platform:String} AND report_key = unhex({report_key:String})
    AND hour IN (SELECT hour FROM reports WHERE platform = {platform:String} AND report_key = unhex({report_key:String}))
ORDER BY epoch, seq
LIMIT 1 BY event_id, content_hash, epoch, seq
