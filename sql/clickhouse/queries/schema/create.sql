-- The table of applied migrations. Written by whoever finds a step missing; equal rows collapse.
CREATE TABLE IF NOT EXISTS schema_migrations {{on_cluster}}
(
    version    UInt32,
    name       String,
    checksum   FixedString(32),
    applied_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (version, name, checksum)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1
