-- Payments: what the payment service says of subscriptions, where statements are billed, and the invoices that we guard.
-- Times are microseconds UTC, sums are 16 big-endian bytes, hours are hours since 1970.

-- The last reading of one customer's subscriptions for one meter. No row: never read, so nothing may be cut at its boundaries.
CREATE TABLE subscriptions (
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    -- When the payment service was asked. Every boundary before this instant is known.
    read_at BIGINT NOT NULL,
    -- none | live | ambiguous: two live items at one instant would bill the same usage twice.
    state TEXT NOT NULL,
    PRIMARY KEY (platform_id, customer_id, meter_id)
);

-- Every period of every subscription item that was ever read, kept for ever: pieces were cut at their ends.
CREATE TABLE bill_periods (
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    item_id TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    -- Moves to an earlier instant when the subscription ends inside the period.
    period_end BIGINT NOT NULL,
    subscription_id TEXT NOT NULL,
    price_id TEXT NOT NULL,
    -- When another price was found on the same item inside the period: its invoice is held.
    repriced_at BIGINT,
    first_read_at BIGINT NOT NULL,
    last_read_at BIGINT NOT NULL,
    -- The draft that bills the period, once it is in our hands. A period that ended without one is closed after an hour: the service may
    -- have finalised it.
    invoice_id TEXT,
    -- From here on nothing is placed in the period.
    closed_at BIGINT,
    -- Over the period's placements and their statements, and how many and how much they are.
    root BYTEA,
    placements_count BIGINT,
    placements_sum BYTEA,
    PRIMARY KEY (platform_id, customer_id, meter_id, item_id, period_start)
);

-- Where a part of a statement is billed. Rows are added and change their state; amounts, minutes and identifiers never change.
CREATE TABLE placements (
    placement_id TEXT NOT NULL PRIMARY KEY,
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    statement_id TEXT NOT NULL,
    statement_hash BYTEA NOT NULL,
    -- The hour of the piece, for the roll-up of drift.
    hour BIGINT NOT NULL,
    piece_start BIGINT NOT NULL,
    piece_end BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    -- A sum above 15 digits has several parts.
    part BIGINT NOT NULL,
    -- Counts from 1; the next one is made only when the last is dead.
    n BIGINT NOT NULL,
    stripe_account TEXT NOT NULL,
    stripe_customer TEXT NOT NULL,
    stripe_meter TEXT NOT NULL,
    event_name TEXT NOT NULL,
    amount BIGINT NOT NULL,
    -- The period that bills it. Carried: not the period that its piece lies in.
    bill_start BIGINT NOT NULL,
    bill_end BIGINT NOT NULL,
    carried BIGINT NOT NULL,
    -- The minute that answers for it, and the instant that its event names.
    minute BIGINT NOT NULL,
    event_at BIGINT NOT NULL,
    -- 0, but for a minute on a boundary that several placements share, one after the other.
    slot BIGINT NOT NULL,
    -- What the minute held before this placement.
    minute_before BYTEA NOT NULL,
    identifier TEXT NOT NULL,
    state TEXT NOT NULL,
    -- Attempts that were written down before the bytes left.
    attempt BIGINT NOT NULL,
    -- The first attempt whose outcome may be unknown; the service forgets identifiers counted from here.
    first_attempt_at BIGINT,
    last_attempt_at BIGINT,
    -- The service said that it holds the identifier.
    exists_said BIGINT NOT NULL,
    -- What the last answer was, for people.
    reason TEXT,
    -- The service's own name of the request that delivered it.
    request_id TEXT,
    -- The last reading of the minute, and the first of those that were without this placement.
    seen BYTEA,
    seen_at BIGINT,
    without_at BIGINT,
    -- 1 once the minute has shown it: reconciliation has nothing left to ask.
    settled BIGINT NOT NULL,
    -- The invoice whose closed period holds it.
    invoice_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT placements_identifier UNIQUE (identifier),
    CONSTRAINT placements_part UNIQUE (statement_id, part, n),
    CONSTRAINT placements_minute UNIQUE (stripe_account, stripe_customer, event_name, minute, slot)
);
-- Work lists by state, and the roll-up of a closed period.
CREATE INDEX placements_work ON placements (platform_id, state, settled, created_at);
CREATE INDEX placements_period ON placements (platform_id, customer_id, meter_id, bill_start);
CREATE INDEX placements_invoice ON placements (platform_id, invoice_id);

-- How far the statements of a platform's log have been looked at. Those that could not be placed then are in sync_waits.
CREATE TABLE sync_cursors (
    platform_id TEXT NOT NULL PRIMARY KEY,
    log_index BIGINT NOT NULL
);

-- Statements that are not placed yet, each with its reason: usage that waits is seen.
CREATE TABLE sync_waits (
    platform_id TEXT NOT NULL,
    statement_id TEXT NOT NULL PRIMARY KEY,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    sum BYTEA NOT NULL,
    reason TEXT NOT NULL,
    since BIGINT NOT NULL
);
CREATE INDEX sync_waits_reason ON sync_waits (platform_id, reason);

-- What was placed against what the payment service counts, per customer, meter and hour, as of the last reconciliation.
CREATE TABLE reconciliations (
    platform_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    meter_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    placed BYTEA NOT NULL,
    seen BYTEA NOT NULL,
    -- Placements whose outcome is not known, or whose minute holds another amount.
    unsettled BIGINT NOT NULL,
    checked_at BIGINT NOT NULL,
    PRIMARY KEY (platform_id, customer_id, meter_id, hour)
);

-- Draft invoices that were found, and what became of them.
CREATE TABLE invoices (
    platform_id TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    customer_id TEXT NOT NULL,
    stripe_customer TEXT NOT NULL,
    subscription_id TEXT,
    -- found | closed | held | finalized | dead
    state TEXT NOT NULL,
    -- Why it is held, for people and machines.
    reason TEXT,
    -- matched | shortfall | excess | not_compared, after finalisation.
    verdict TEXT,
    -- Placed in its periods, and counted on its lines.
    expected BYTEA,
    billed BYTEA,
    -- Over the roots of its periods; the same text is in its metadata.
    root BYTEA,
    created_at BIGINT NOT NULL,
    found_at BIGINT NOT NULL,
    -- When the service would have finalised it by itself.
    finalizes_at BIGINT,
    auto_advance_off_at BIGINT,
    closed_at BIGINT,
    finalised_at BIGINT,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (platform_id, invoice_id)
);

-- The lines of an invoice: as of the draft first, replaced by the final ones.
CREATE TABLE invoice_lines (
    platform_id TEXT NOT NULL,
    invoice_id TEXT NOT NULL,
    line_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    item_id TEXT,
    price_id TEXT,
    -- Ours, where the price is of one of our meters.
    meter_id TEXT,
    -- 16 bytes; none where the service's number is not whole.
    quantity BYTEA,
    amount BIGINT NOT NULL,
    currency TEXT NOT NULL,
    period_start BIGINT NOT NULL,
    period_end BIGINT NOT NULL,
    description TEXT,
    final BIGINT NOT NULL,
    PRIMARY KEY (platform_id, line_id)
);
CREATE INDEX invoice_lines_invoice ON invoice_lines (platform_id, invoice_id, place);
