-- Notes a period of a subscription item. Its end moves only to an earlier instant; another price on it is marked, not forgotten.
INSERT INTO bill_periods (
    platform_id, customer_id, meter_id, item_id, period_start, period_end, subscription_id, price_id, first_read_at, last_read_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
ON CONFLICT (platform_id, customer_id, meter_id, item_id, period_start) DO UPDATE SET
    period_end = CASE WHEN EXCLUDED.period_end < bill_periods.period_end THEN EXCLUDED.period_end ELSE bill_periods.period_end END,
    repriced_at = CASE
        WHEN bill_periods.repriced_at IS NULL AND bill_periods.price_id <> EXCLUDED.price_id THEN EXCLUDED.last_read_at
        ELSE bill_periods.repriced_at
    END,
    last_read_at = EXCLUDED.last_read_at
