-- The core: platforms, keys, customers, meters, the journals' epochs, cuts, leases and generic record streams.
-- Times are microseconds UTC, sums are 16 big-endian bytes, hours are hours since 1970.

-- A reseller in one mode. Test and live are two platforms, so no row can hold both.
CREATE TABLE platforms (
    platform_id TEXT NOT NULL PRIMARY KEY,
    -- 1 for live, 0 for test.
    livemode BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- The one Stripe account that this platform bills through.
    stripe_account TEXT,
    -- How long after its end an hour waits for late reports.
    lateness_us BIGINT NOT NULL,
    -- How long after its end an hour is sealed although a journal is silent.
    seal_deadline_us BIGINT NOT NULL,
    -- How far back a report may be dated.
    accept_back_us BIGINT NOT NULL,
    -- 1: a report of a customer that is not listed is refused.
    strict_customers BIGINT NOT NULL,
    -- off | shadow | live
    sync_mode TEXT NOT NULL
);

-- Keys by the hash of their secret; the secret itself is nowhere.
CREATE TABLE api_keys (
    key_id TEXT NOT NULL PRIMARY KEY,
    platform_id TEXT NOT NULL,
    livemode BIGINT NOT NULL,
    secret_hash BYTEA NOT NULL UNIQUE,
    label TEXT NOT NULL,
    -- Comma-separated, in the order ingest, backfill, read, support, finance, admin.
    scopes TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);

-- Customers that someone named: linked to Stripe, or listed.
CREATE TABLE customers (
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    stripe_account TEXT,
    stripe_customer TEXT,
    created_at BIGINT NOT NULL,
    linked_at BIGINT,
    PRIMARY KEY (platform_id, customer_id)
);
-- One Stripe customer pays for one customer of one platform, over all platforms.
CREATE UNIQUE INDEX customers_by_stripe ON customers (stripe_account, stripe_customer);

-- One secret a customer; destroying it makes the customer's frame identities unprovable and keeps every sum.
CREATE TABLE erasure_keys (
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    secret BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (platform_id, customer_id)
);

-- Meters are succeeded, never edited.
CREATE TABLE meters (
    platform_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    -- What is counted, as usage::MeterDefinition serialises.
    definition TEXT NOT NULL,
    definition_hash BYTEA NOT NULL,
    -- The name under which Stripe counts.
    event_name TEXT NOT NULL,
    stripe_meter TEXT,
    effective_from_hour BIGINT NOT NULL,
    superseded_at BIGINT,
    PRIMARY KEY (platform_id, meter_id)
);

-- One opening of one journal folder. Positions are gapless within an epoch.
CREATE TABLE epochs (
    epoch_id BIGINT NOT NULL PRIMARY KEY,
    folder_id TEXT NOT NULL,
    -- open | closed | lost
    state TEXT NOT NULL,
    opened_at BIGINT NOT NULL,
    -- Every position up to here is in the store, or quarantined.
    confirmed_seq BIGINT NOT NULL,
    -- The last position, once the epoch is closed or lost.
    end_seq BIGINT,
    -- Everything that was accepted before this instant is confirmed.
    confirmed_through BIGINT NOT NULL,
    heartbeat_at BIGINT NOT NULL
);

-- Cumulative counts as of a position, for each platform and hour that the epoch touched: what the store must hold up to there.
CREATE TABLE epoch_counts (
    epoch_id BIGINT NOT NULL,
    platform_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    events BIGINT NOT NULL,
    tokens BYTEA NOT NULL,
    frames BIGINT NOT NULL,
    PRIMARY KEY (platform_id, hour, epoch_id, seq)
);

-- A cut: one reading of every epoch's confirmed position.
CREATE TABLE cuts (
    cut_id BIGINT NOT NULL PRIMARY KEY,
    taken_at BIGINT NOT NULL
);
CREATE TABLE cut_positions (
    cut_id BIGINT NOT NULL,
    epoch_id BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (cut_id, epoch_id)
);

-- Who may do a thing now. The fence grows for ever, so that a holder who slept cannot commit.
CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    fence BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- Streams of records that the ledger does not read.
CREATE TABLE records (
    stream TEXT NOT NULL,
    seq BIGINT NOT NULL,
    body BYTEA NOT NULL,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (stream, seq)
);

-- Public halves of signing keys, kept for ever, so that an old signature can be checked.
CREATE TABLE public_keys (
    kid TEXT NOT NULL PRIMARY KEY,
    -- acknowledgement | head
    family TEXT NOT NULL,
    public_key BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);
