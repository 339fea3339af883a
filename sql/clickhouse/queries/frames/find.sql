-- Where a frame was served: one row a place in a content of an event, newest first. An empty digest asks for any.
SELECT f.event_id AS event_id, f.content_hash AS content_hash, f.place AS place, any(f.digest_kind) AS digest_kind, any(f.digest_sha256) AS digest_sha256,
    any(f.digest_other) AS digest_other, any(f.cost) AS cost, any(f.commitment) AS commitment, any(f.customer) AS customer, any(f.as_of) AS at
FROM served_frames AS f
WHERE f.platform = {platform:String} AND f.provider = {provider:String} AND f.frame_id = {frame_id:String}
    AND ({digest_kind:UInt8} = 0
        OR (f.digest_kind = {digest_kind:UInt8} AND f.digest_sha256 = unhex({digest_sha256:String}) AND f.digest_other = {digest_other:String}))
    AND ({customer:String} = '' OR f.customer = {customer:String})
GROUP BY f.event_id, f.content_hash, f.place
HAVING ({first:Bool} OR (at, event_id, content_hash, place) < (fromUnixTimestamp64Micro({after_at:Int64}, 'UTC'),
    toFixedString(unhex({after_event:String}), 16), toFixedString(unhex({after_content:String}), 32), {after_place:UInt32}))
ORDER BY at DESC, event_id DESC, content_hash DESC, place DESC
LIMIT {limit:UInt32}
