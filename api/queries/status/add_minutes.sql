-- Adds calls to minutes. $1 minutes, $2 calls, $3 failed calls.
insert into accounts.traffic_minutes as m (minute, calls, failures)
select * from unnest($1::timestamptz[], $2::bigint[], $3::bigint[])
on conflict (minute) do update set calls = m.calls + excluded.calls, failures = m.failures + excluded.failures
