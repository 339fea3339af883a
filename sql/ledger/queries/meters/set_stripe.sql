-- Notes the meter's counterpart at Stripe.
UPDATE meters SET stripe_meter = $3 WHERE platform_id = $1 AND meter_id = $2
