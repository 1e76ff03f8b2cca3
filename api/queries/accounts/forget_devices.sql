-- All but account $1's newest $2 devices.
delete from accounts.known_devices d
where d.account_id = $1 and d.device in (
  select o.device from accounts.known_devices o where o.account_id = $1 order by o.seen_at desc, o.device offset $2
)
