-- How many epochs stand elsewhere than in a cut.
SELECT COUNT(*) FROM epochs e LEFT JOIN cut_positions p ON p.epoch_id = e.epoch_id AND p.cut_id = $1
WHERE p.seq IS NULL OR p.seq <> e.confirmed_seq
