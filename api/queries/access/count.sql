-- Adds calls to the statistics. $1 accounts, $2 days, $3 endpoints, $4 keys, $5 outcomes, $6 calls, $7 times of the
-- last calls.
insert into accounts.calls as c (account_id, day, endpoint, key_id, outcome, calls, last_at)
select * from unnest($1::bigint[], $2::date[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::timestamptz[])
on conflict (account_id, day, endpoint, key_id, outcome)
do update set calls = c.calls + excluded.calls, last_at = greatest(c.last_at, excluded.last_at)
