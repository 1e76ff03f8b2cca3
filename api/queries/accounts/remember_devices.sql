-- Stores the devices $2 of a sign-in of account $1. $3 is the earlier name of the browser, which is replaced.
with replaced as (
  delete from accounts.known_devices d where d.account_id = $1 and d.device = $3
)
insert into accounts.known_devices as k (account_id, device)
select $1, d from unnest($2::bytea[]) d order by d
on conflict (account_id, device) do update set seen_at = now()
