-- Which record streams an owner has. A prefix of the stream's name would not do: not every collation keeps equal beginnings together.
CREATE TABLE record_streams (
    -- Whose streams these are, in the words of the room that writes them: `delegation/{platform}`.
    owner TEXT NOT NULL,
    -- The stream's name in records. Its first record is written in the same transaction as this row.
    stream TEXT NOT NULL,
    PRIMARY KEY (owner, stream)
);
