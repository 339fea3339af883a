-- The meters of a platform by name.
SELECT platform_id, meter_id, definition, definition_hash, event_name, stripe_meter, effective_from_hour, superseded_at
FROM meters WHERE platform_id = $1 ORDER BY meter_id
