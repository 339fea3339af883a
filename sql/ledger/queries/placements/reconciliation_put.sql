-- Notes what an hour of a customer and meter holds here and at the payment service.
INSERT INTO reconciliations (platform_id, customer_id, meter_id, hour, placed, seen, unsettled, checked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (platform_id, customer_id, meter_id, hour) DO UPDATE SET
    placed = EXCLUDED.placed, seen = EXCLUDED.seen, unsettled = EXCLUDED.unsettled, checked_at = EXCLUDED.checked_at
