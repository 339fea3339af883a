-- The lines that bill a placement: tiers make several of one item.
SELECT
    line.platform_id, line.invoice_id, line.line_id, line.place, line.item_id, line.price_id, line.meter_id,
    line.quantity, line.amount, line.currency, line.period_start, line.period_end, line.description, line.final
FROM invoice_lines line
JOIN placements ON placements.platform_id = line.platform_id AND placements.invoice_id = line.invoice_id
JOIN bill_periods period ON period.platform_id = line.platform_id AND period.item_id = line.item_id
    AND period.period_start = line.period_start AND period.meter_id = line.meter_id
WHERE placements.platform_id = $1 AND placements.placement_id = $2
    AND period.customer_id = placements.customer_id AND period.meter_id = placements.meter_id
    AND period.period_start = placements.bill_start
ORDER BY line.place
