-- Notes a line of an invoice.
INSERT INTO invoice_lines (
    platform_id, invoice_id, line_id, place, item_id, price_id, meter_id, quantity, amount, currency, period_start,
    period_end, description, final
) VALUES (
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
)
