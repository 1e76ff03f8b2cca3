select s.id, s.address, s.agent, s.created_at, s.seen_at from accounts.sessions s
where s.account_id = $1 and s.seen_at > now() - interval '30 minutes' and s.created_at > now() - interval '12 hours'
order by s.id desc
