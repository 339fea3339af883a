-- Every epoch ever registered.
SELECT epoch_id, folder_id, state, opened_at, confirmed_seq, end_seq, confirmed_through, heartbeat_at FROM epochs ORDER BY epoch_id
