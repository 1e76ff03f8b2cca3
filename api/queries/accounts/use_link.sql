update accounts.links set used_at = now() where hash = $1 and used_at is null and expires_at > now()
returning purpose, email, account_id, tier
