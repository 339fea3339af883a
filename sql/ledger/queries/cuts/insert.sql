-- The next cut by number.
INSERT INTO cuts (cut_id, taken_at) SELECT COALESCE(MAX(cut_id), 0) + 1, $1 FROM cuts RETURNING cut_id
