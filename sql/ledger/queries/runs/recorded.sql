-- Notes that a run's record is written.
UPDATE seal_runs SET recorded_at = $2 WHERE run_id = $1 AND recorded_at IS NULL
