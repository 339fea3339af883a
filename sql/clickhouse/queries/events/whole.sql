-- Every stored event of a platform's hour with its frames, each position and content once: what an audit reads.
SELECT
    platform, hour, customer, event_id, content_hash, epoch, seq, kind, provider, request, turn, report_key, report_hash, as_of,
    received_at, tokens, frames_served, frames_rejected, salt, warnings, frames.frame_id, frames.digest_kind, frames.digest_sha256,
    frames.digest_other, frames.cost, frames.commitment
FROM usage_events
WHERE platform = {platform:String} AND hour = {hour:Int64}
ORDER BY customer, event_id, content_hash, epoch, seq
LIMIT 1 BY customer, event_id, content_hash, epoch, seq
