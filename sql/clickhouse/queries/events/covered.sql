-- What a run counts: the hour's usage up to its cut, less every event whose id was there at the lower cut already.
SELECT customer, event_id, content_hash, kind, provider, as_of, tokens, frames_served
FROM ({{once}})
WHERE ({only:Bool} = has({customers:Array(String)}, customer))
    AND event_id NOT IN
    (
        SELECT event_id
        FROM event_keys
        WHERE seq <= arrayElement({lower_seqs:Array(UInt64)}, indexOf({lower_epochs:Array(UInt64)}, epoch))
            AND event_id IN
            (
                SELECT event_id FROM usage_events WHERE platform = {platform:String} AND hour >= {from:Int64} AND hour < {until:Int64}
            )
    )
ORDER BY customer, event_id
