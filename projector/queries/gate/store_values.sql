-- $1 run, $2 source, $3 kinds, $4 expectations, $5 values of its checks. Those of the first comparison stay.
insert into measured_loads (run, source, kind, expectation, value)
select $1, $2, * from unnest($3::text[], $4::text[], $5::numeric[])
where not exists (select from measured_loads where run = $1)
on conflict (run, kind, expectation) do nothing
