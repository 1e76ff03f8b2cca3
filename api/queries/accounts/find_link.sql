select l.purpose, l.email, l.account_id, l.tier from accounts.links l
where l.hash = $1 and l.used_at is null and l.expires_at > now()
