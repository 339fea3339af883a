-- The positions of a cut by epoch.
SELECT epoch_id, seq FROM cut_positions WHERE cut_id = $1 ORDER BY epoch_id
