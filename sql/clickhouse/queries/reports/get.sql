-- Every stored content of one report, the earliest acceptance first.
SELECT
    platform, report_key, report_hash, epoch, first_seq, last_seq, request, turn, customer, hour, as_of, received_at,
    budget_requested, budget_consumed, events, tokens, warnings, origin, consents, legs
FROM reports
WHERE platform = {platform:String} AND report_key = unhex({report_key:String})
ORDER BY received_at, epoch, last_seq
LIMIT 1 BY report_hash, epoch, last_seq
