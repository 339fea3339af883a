-- Every stored content of one report, the earliest acceptance first.
SELECT ?fields
FROM reports
WHERE platform = {platform:String} AND report_key = unhex({report_key:String})
ORDER BY received_at, epoch, last_seq
LIMIT 1 BY report_hash, epoch, last_seq
