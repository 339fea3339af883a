-- Adds a statement.
INSERT INTO statements (statement_id, platform_id, customer_id, meter_id, definition_hash, hour, piece_start, piece_end, revision, count, sum, root, statement_hash, log_index, run_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
