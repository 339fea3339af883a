-- The migrations that were applied, each text of each once.
SELECT DISTINCT version, name, checksum FROM schema_migrations ORDER BY version
