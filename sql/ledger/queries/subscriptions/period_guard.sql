-- Takes a period into the invoice that bills it.
UPDATE bill_periods SET invoice_id = $6
WHERE platform_id = $1 AND customer_id = $2 AND meter_id = $3 AND item_id = $4 AND period_start = $5 AND invoice_id IS NULL
