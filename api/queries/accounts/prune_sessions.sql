-- Deletes expired sessions of all accounts, and all sessions of account $1 except the newest $2.
delete from accounts.sessions s
where s.seen_at < now() - interval '30 minutes' or s.created_at < now() - interval '12 hours'
  or s.id in (select o.id from accounts.sessions o where o.account_id = $1 order by o.id desc offset $2)
