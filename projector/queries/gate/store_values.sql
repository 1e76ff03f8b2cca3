-- $1 run, $2 kinds, $3 expectations, $4 values of its checks.
with removed as (
  delete from measured_loads where run = $1 and (kind, expectation) not in (select * from unnest($2::text[], $3::text[]))
)
insert into measured_loads (run, kind, expectation, value)
select $1, * from unnest($2::text[], $3::text[], $4::numeric[])
on conflict (run, kind, expectation) do update set value = excluded.value
