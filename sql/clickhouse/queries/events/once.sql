-- The one rule by which usage is counted: at or below the cut, less the reports of which two contents are known there,
-- one row an event however often it was stored. Every sum stands on this.
SELECT
    customer, event_id, any(content_hash) AS content_hash, any(kind) AS kind, any(provider) AS provider,
    any(hour) AS hour, any(as_of) AS as_of, any(tokens) AS tokens, any(frames_served) AS frames_served
FROM usage_events
WHERE platform = {platform:String} AND hour >= {from:Int64} AND hour < {until:Int64}
    AND ({uncut:Bool} OR seq <= arrayElement({upper_seqs:Array(UInt64)}, indexOf({upper_epochs:Array(UInt64)}, epoch)))
    AND report_key NOT IN
    (
        SELECT report_key
        FROM reports
        WHERE platform = {platform:String}
            AND ({uncut:Bool} OR last_seq <= arrayElement({upper_seqs:Array(UInt64)}, indexOf({upper_epochs:Array(UInt64)}, epoch)))
        GROUP BY report_key
        HAVING uniqExact(report_hash) > 1
    )
GROUP BY customer, event_id
