-- A new meter; its definition never changes.
INSERT INTO meters (platform_id, meter_id, definition, definition_hash, event_name, effective_from_hour)
VALUES ($1, $2, $3, $4, $5, $6)
