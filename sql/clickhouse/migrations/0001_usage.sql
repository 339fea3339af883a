-- Usage: one row per event with its frames, and three tables that find it again. All sorted so that only a row that was
-- sent twice by one journal collapses: a copy of another journal and a conflicting content stay visible.
CREATE TABLE IF NOT EXISTS usage_events {{on_cluster}}
(
    platform          LowCardinality(String),
    hour              Int64 COMMENT 'UTC hours since 1970: the window that as_of lies in',
    customer          String,
    event_id          FixedString(16),
    content_hash      FixedString(32),
    epoch             UInt64 COMMENT 'the journal that accepted it, and the place there',
    seq               UInt64,
    kind              LowCardinality(String),
    provider          LowCardinality(String),
    request           String,
    turn              String,
    report_key        FixedString(16),
    report_hash       FixedString(32),
    as_of             DateTime64(6, 'UTC'),
    received_at       DateTime64(6, 'UTC'),
    tokens            UInt64,
    frames_served     UInt32,
    frames_rejected   UInt32,
    salt              FixedString(32) COMMENT 'of the event; each frame has its own, derived from it',
    warnings          Array(LowCardinality(String)),
    -- digest_kind: 0 none, 1 sha256 in digest_sha256, 2 any other text in digest_other
    frames            Nested
    (
        frame_id      String,
        digest_kind   UInt8,
        digest_sha256 FixedString(32),
        digest_other  String,
        cost          UInt64,
        commitment    FixedString(32)
    )
)
ENGINE = {{replicated}}ReplacingMergeTree
PARTITION BY toYYYYMM(as_of)
ORDER BY (platform, hour, customer, event_id, content_hash, epoch, seq)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- A row per frame and place, sorted by the frame's identity: where a dispute starts.
CREATE TABLE IF NOT EXISTS served_frames {{on_cluster}}
(
    platform      LowCardinality(String),
    provider      LowCardinality(String),
    frame_id      String,
    event_id      FixedString(16),
    content_hash  FixedString(32),
    place         UInt32 COMMENT 'in the event, from 0',
    epoch         UInt64,
    seq           UInt64,
    digest_kind   UInt8,
    digest_sha256 FixedString(32),
    digest_other  String,
    cost          UInt64,
    commitment    FixedString(32),
    customer      String,
    as_of         DateTime64(6, 'UTC')
)
ENGINE = {{replicated}}ReplacingMergeTree
PARTITION BY toYYYYMM(as_of)
ORDER BY (platform, provider, frame_id, event_id, content_hash, place, epoch, seq)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS served_frames_feed {{on_cluster}} TO served_frames AS
SELECT
    platform, provider, frame_id, event_id, content_hash, toUInt32(number - 1) AS place, epoch, seq,
    digest_kind, digest_sha256, digest_other, cost, commitment, customer, as_of
FROM usage_events
ARRAY JOIN
    frames.frame_id AS frame_id, frames.digest_kind AS digest_kind, frames.digest_sha256 AS digest_sha256,
    frames.digest_other AS digest_other, frames.cost AS cost, frames.commitment AS commitment,
    arrayEnumerate(frames.frame_id) AS number;

-- Every content of every event id, whatever customer or hour: finds copies, and ids that were counted before.
CREATE TABLE IF NOT EXISTS event_keys {{on_cluster}}
(
    event_id     FixedString(16),
    content_hash FixedString(32),
    epoch        UInt64,
    seq          UInt64,
    platform     LowCardinality(String),
    customer     String,
    hour         Int64,
    report_key   FixedString(16),
    report_hash  FixedString(32),
    as_of        DateTime64(6, 'UTC')
)
ENGINE = {{replicated}}ReplacingMergeTree
PARTITION BY toYYYYMM(as_of)
ORDER BY (event_id, content_hash, epoch, seq)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS event_keys_feed {{on_cluster}} TO event_keys AS
SELECT event_id, content_hash, epoch, seq, platform, customer, hour, report_key, report_hash, as_of
FROM usage_events;

-- A row per report: the unit of conflict, and what support reads besides the events.
CREATE TABLE IF NOT EXISTS reports {{on_cluster}}
(
    platform         LowCardinality(String),
    report_key       FixedString(16),
    report_hash      FixedString(32),
    epoch            UInt64,
    first_seq        UInt64,
    last_seq         UInt64 COMMENT 'the position that the acknowledgement names',
    request          String,
    turn             String,
    customer         String,
    hour             Int64,
    as_of            DateTime64(6, 'UTC'),
    received_at      DateTime64(6, 'UTC'),
    budget_requested UInt64,
    budget_consumed  UInt64,
    events           UInt32,
    tokens           UInt64,
    warnings         String COMMENT 'JSON: the findings that did not refuse it',
    origin           String COMMENT 'JSON of the host''s own numbering, empty when there was none',
    consents         String COMMENT 'JSON',
    legs             String COMMENT 'JSON'
)
ENGINE = {{replicated}}ReplacingMergeTree
PARTITION BY toYYYYMM(as_of)
ORDER BY (platform, report_key, report_hash, epoch, last_seq)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;

-- What was sealed, beside the usage it was sealed from: a restored ledger replays its runs from here.
CREATE TABLE IF NOT EXISTS seal_runs {{on_cluster}}
(
    platform     LowCardinality(String),
    hour         Int64,
    run_id       String,
    committed_at DateTime64(6, 'UTC'),
    record       String COMMENT 'JSON: cut, lower cuts, pieces, statements'
)
ENGINE = {{replicated}}ReplacingMergeTree
ORDER BY (platform, hour, run_id)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1;
