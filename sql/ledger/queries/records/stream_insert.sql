-- Notes that an owner has a stream; the primary key refuses a second time.
INSERT INTO record_streams (owner, stream) VALUES ($1, $2)
