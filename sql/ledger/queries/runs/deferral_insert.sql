-- Leaves a customer's meter for a later run.
INSERT INTO seal_deferrals (run_id, customer_id, meter_id) VALUES ($1, $2, $3)
