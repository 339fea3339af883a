-- The one rule by which usage is counted: at or below the cut, less the reports of which two contents are known there,
-- one row an event however often it was stored. Every sum stands on this.
SELECT
    e.customer AS customer, e.event_id AS event_id, any(e.content_hash) AS content_hash, any(e.kind) AS kind, any(e.provider) AS provider,
    any(e.hour) AS hour, any(e.as_of) AS as_of, any(e.tokens) AS tokens, any(e.frames_served) AS frames_served
FROM usage_events AS e
WHERE e.platform = {platform:String} AND e.hour >= {from:Int64} AND e.hour < {until:Int64}
    AND ({uncut:Bool} OR e.seq <= arrayElement({upper_seqs:Array(UInt64)}, indexOf({upper_epochs:Array(UInt64)}, e.epoch)))
    AND e.report_key NOT IN
    (
        SELECT report_key
        FROM reports
        WHERE platform = {platform:String}
            AND report_key IN
            (
                SELECT report_key FROM usage_events WHERE platform = {platform:String} AND hour >= {from:Int64} AND hour < {until:Int64}
            )
            AND ({uncut:Bool} OR last_seq <= arrayElement({upper_seqs:Array(UInt64)}, indexOf({upper_epochs:Array(UInt64)}, epoch)))
        GROUP BY report_key
        HAVING uniqExact(report_hash) > 1
    )
GROUP BY e.customer, e.event_id
