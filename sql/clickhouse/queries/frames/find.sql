-- Where a frame was served: one row an event and place, newest first. An empty digest asks for any.
SELECT event_id, place, any(content_hash) AS content_hash, any(digest_kind) AS digest_kind, any(digest_sha256) AS digest_sha256,
    any(digest_other) AS digest_other, any(cost) AS cost, any(commitment) AS commitment, any(customer) AS customer, any(as_of) AS at
FROM served_frames
WHERE platform = {platform:String} AND provider = {provider:String} AND frame_id = {frame_id:String}
    AND ({digest_kind:UInt8} = 0
        OR (digest_kind = {digest_kind:UInt8} AND digest_sha256 = unhex({digest_sha256:String}) AND digest_other = {digest_other:String}))
    AND ({customer:String} = '' OR customer = {customer:String})
GROUP BY event_id, place
HAVING ({first:Bool} OR (at, event_id, place) < (fromUnixTimestamp64Micro({after_at:Int64}, 'UTC'), toFixedString(unhex({after_event:String}), 16), {after_place:UInt32}))
ORDER BY at DESC, event_id DESC, place DESC
LIMIT {limit:UInt32}
