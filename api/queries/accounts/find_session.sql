-- Session of the cookie with hash $1. A session ends after 30 idle minutes, and after 12 hours at most.
with found as (
  select s.id, s.account_id, a.email
  from accounts.sessions s join accounts.accounts a on a.id = s.account_id
  where s.hash = $1 and s.seen_at > now() - interval '30 minutes' and s.created_at > now() - interval '12 hours'
    and a.deleted_at is null and a.disabled_at is null
), seen as (
  update accounts.sessions s set seen_at = now()
  from found where s.id = found.id and s.seen_at < now() - interval '30 seconds'
)
select id, account_id, email from found
