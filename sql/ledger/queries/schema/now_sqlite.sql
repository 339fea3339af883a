-- The ledger's clock in microseconds on SQLite.
SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)
