-- Adds a refused sign-in from address $2 to the audit log of account $1, at most $3 per day.
insert into accounts.audit (account_id, action, details, actor)
select $1::bigint, 'session.refuse', jsonb_build_object('address', $2::text), 'visitor'
where $3::bigint > (
  select count(*) from accounts.audit d
  where d.account_id = $1 and d.action = 'session.refuse' and d.at > clock_timestamp() - interval '1 day'
)
