-- $4: who did it; without it the role of the database. $5: most entries of this action and actor a day; null: no limit.
-- A full day gives no row.
insert into accounts.audit (account_id, action, details, actor)
select $1::bigint, $2::text, $3::jsonb, coalesce($4::text, session_user)
where $5::bigint is null or $5::bigint > (
  select count(*) from accounts.audit d
  where d.account_id = $1 and d.action = $2 and d.actor = coalesce($4::text, session_user)
    and d.at > clock_timestamp() - interval '1 day'
)
