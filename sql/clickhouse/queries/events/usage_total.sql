-- The total over a whole filter, whatever page of it is read.
SELECT count() AS events, sum(toUInt128(tokens)) AS tokens, sum(toUInt64(frames_served)) AS frames
FROM ({{once}})
WHERE ({customer:String} = '' OR customer = {customer:String})
    AND ({provider:String} = '' OR provider = {provider:String})
