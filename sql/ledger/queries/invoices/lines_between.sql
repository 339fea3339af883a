-- The lines of the invoices of one page.
SELECT
    platform_id, invoice_id, line_id, place, item_id, price_id, meter_id, quantity, amount, currency, period_start,
    period_end, description, final
FROM invoice_lines
WHERE platform_id = $1 AND invoice_id >= $2 AND invoice_id <= $3 ORDER BY invoice_id, place
