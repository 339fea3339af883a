-- Reports of which two contents are known: kept both, counted neither.
SELECT report_key, any(request) AS request, any(turn) AS turn, min(hour) AS first_hour, uniqExact(report_hash) AS contents,
    min(received_at) AS first_received, max(received_at) AS last_received
FROM reports
WHERE platform = {platform:String}
    AND ({uncut:Bool} OR last_seq <= arrayElement({upper_seqs:Array(UInt64)}, indexOf({upper_epochs:Array(UInt64)}, epoch)))
GROUP BY report_key
HAVING contents > 1 AND report_key > unhex({after:String})
ORDER BY report_key
LIMIT {limit:UInt32}
