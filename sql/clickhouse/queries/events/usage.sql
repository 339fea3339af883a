-- Usage by customer, provider and hour, of what is stored and not in conflict.
SELECT customer, provider, hour, count() AS events, sum(toUInt128(tokens)) AS tokens, sum(toUInt64(frames_served)) AS frames
FROM ({{once}})
WHERE ({customer:String} = '' OR customer = {customer:String})
    AND ({provider:String} = '' OR provider = {provider:String})
GROUP BY customer, provider, hour
HAVING (customer, provider, hour) > ({after_customer:String}, {after_provider:String}, {after_hour:Int64})
ORDER BY customer, provider, hour
LIMIT {limit:UInt32}
