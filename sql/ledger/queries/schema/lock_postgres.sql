-- One migrator at a time on Postgres (SQLite has one writer anyway); released with the transaction.
SELECT CAST(pg_advisory_xact_lock(7267530812435891) AS TEXT)
