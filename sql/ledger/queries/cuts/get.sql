-- One cut.
SELECT cut_id, taken_at FROM cuts WHERE cut_id = $1
