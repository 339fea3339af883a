-- Fixes a placement in the closed period of an invoice.
UPDATE placements SET invoice_id = $2, updated_at = $3 WHERE placement_id = $1 AND invoice_id IS NULL
