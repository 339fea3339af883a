-- Changes what an operator may change: never the mode.
UPDATE platforms SET stripe_account = $2, lateness_us = $3, seal_deadline_us = $4, accept_back_us = $5, strict_customers = $6, sync_mode = $7
WHERE platform_id = $1
