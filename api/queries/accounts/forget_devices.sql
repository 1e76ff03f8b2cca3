-- Deletes all devices of account $1 except the newest $2.
delete from accounts.known_devices d
where d.account_id = $1 and d.device in (
  select o.device from accounts.known_devices o where o.account_id = $1 order by o.seen_at desc, o.device offset $2
)
