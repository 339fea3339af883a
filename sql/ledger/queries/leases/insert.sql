-- Makes the row of a lease that nobody ever held.
INSERT INTO leases (name, holder, fence, expires_at) VALUES ($1, '', 0, 0) ON CONFLICT (name) DO NOTHING
