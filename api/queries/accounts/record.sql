-- Adds an audit entry. $1 account, $2 action, $3 details; $4 actor, or null for the role of the database; $5 maximum
-- number of entries of this action and actor per day, or null for no limit. No row if the maximum is reached.
insert into accounts.audit (account_id, action, details, actor)
select $1::bigint, $2::text, $3::jsonb, coalesce($4::text, session_user)
where $5::bigint is null or $5::bigint > (
  select count(*) from accounts.audit d
  where d.account_id = $1 and d.action = $2 and d.actor = coalesce($4::text, session_user)
    and d.at > clock_timestamp() - interval '1 day'
)
