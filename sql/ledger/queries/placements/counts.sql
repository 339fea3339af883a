-- How many placements a platform has in each state.
SELECT state, COUNT(*) AS count FROM placements WHERE platform_id = $1 GROUP BY state ORDER BY state
