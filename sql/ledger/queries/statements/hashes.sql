-- The entries of a platform's log.
SELECT statement_hash FROM statements WHERE platform_id = $1 AND log_index <= $2 ORDER BY log_index
