-- Reads every epoch's confirmed position in this one statement.
INSERT INTO cut_positions (cut_id, epoch_id, seq) SELECT $1, epoch_id, confirmed_seq FROM epochs
