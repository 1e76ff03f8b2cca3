-- Takes a free slot of an account for an open stream. $1 account, $2 instance, $3 number of slots, $4 length of the lease in
-- seconds. The slot is null if none was free, or if another instance took it at the same time.
with free as (
  select n as slot from generate_series(1, $3::integer) n
  where not exists (
    select from accounts.stream_slots t
    where t.account_id = $1::bigint and t.slot = n and t.expires_at > clock_timestamp()
  )
  order by n limit 1
), taken as (
  insert into accounts.stream_slots as s (account_id, slot, instance, expires_at)
  select $1::bigint, slot, $2::bigint, clock_timestamp() + $4::double precision * interval '1 second' from free
  on conflict (account_id, slot) do update set instance = excluded.instance, expires_at = excluded.expires_at
  where s.expires_at <= clock_timestamp()
  returning slot
)
select (select slot from taken) as slot, exists (select from free) as was_free
