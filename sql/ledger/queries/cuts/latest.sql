-- The newest cut.
SELECT cut_id, taken_at FROM cuts ORDER BY cut_id DESC LIMIT 1
