-- Sealing: runs, the pieces they cut hours into, statements, and each platform's log of them.

-- One pass over one platform's hour up to a cut.
CREATE TABLE seal_runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    platform_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    -- 1, 2, … for each platform and hour, in order of commit.
    ordinal BIGINT NOT NULL,
    cut_id BIGINT NOT NULL,
    -- How many events the journals counted for the hour at the cut: more than that is work for a further run.
    events BIGINT NOT NULL,
    -- Epochs that were silent when the hour was sealed without them, as a comma list; empty: complete.
    silent TEXT NOT NULL,
    -- Whether customers were deferred: another run is due although nothing new came.
    deferred BIGINT NOT NULL,
    committed_at BIGINT NOT NULL,
    -- When the run's record was written beside the usage; until then nothing of it is shown or sent.
    recorded_at BIGINT,
    UNIQUE (platform_id, hour, ordinal)
);
CREATE INDEX seal_runs_unrecorded ON seal_runs (recorded_at, committed_at);

-- Customers and meters that a run left for a later one.
CREATE TABLE seal_deferrals (
    run_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    PRIMARY KEY (run_id, customer_id, meter_id)
);

-- How a customer's hour is cut, fixed by the first run that counted it.
CREATE TABLE pieces (
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    piece_start BIGINT NOT NULL,
    piece_end BIGINT NOT NULL,
    PRIMARY KEY (platform_id, hour, customer_id, meter_id, piece_start)
);

-- What a customer used of a meter in a piece, as one run found it. Never changed.
CREATE TABLE statements (
    statement_id TEXT NOT NULL PRIMARY KEY,
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    definition_hash BYTEA NOT NULL,
    hour BIGINT NOT NULL,
    piece_start BIGINT NOT NULL,
    piece_end BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    count BIGINT NOT NULL,
    sum BYTEA NOT NULL,
    root BYTEA NOT NULL,
    statement_hash BYTEA NOT NULL,
    -- Its place in the platform's log, from 1.
    log_index BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    UNIQUE (platform_id, log_index),
    UNIQUE (platform_id, customer_id, meter_id, piece_start, revision)
);
CREATE INDEX statements_by_run ON statements (run_id);
CREATE INDEX statements_by_hour ON statements (platform_id, hour, customer_id);

-- The right edge of each platform's log: enough to append to it.
CREATE TABLE log_frontiers (
    platform_id TEXT NOT NULL PRIMARY KEY,
    size BIGINT NOT NULL,
    frontier BYTEA NOT NULL
);

-- Signed heads, kept for ever.
CREATE TABLE heads (
    platform_id TEXT NOT NULL,
    size BIGINT NOT NULL,
    root BYTEA NOT NULL,
    at BIGINT NOT NULL,
    kid TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (platform_id, size)
);

-- Hours that are not sealed because the store and the journals do not say the same.
CREATE TABLE hour_freezes (
    platform_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    found_at BIGINT NOT NULL,
    PRIMARY KEY (platform_id, hour)
);
