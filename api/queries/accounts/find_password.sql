-- The account of an address and its password's hash, when it may sign in. $2, $3: the browser and the network of the attempt.
select a.id, p.hash,
  exists (select from accounts.known_devices d
    where d.account_id = a.id and d.device = $2 and d.seen_at > now() - interval '30 days') as knows_browser,
  exists (select from accounts.known_devices d
    where d.account_id = a.id and d.device = $3 and d.seen_at > now() - interval '30 days') as knows_network
from accounts.accounts a join accounts.passwords p on p.account_id = a.id
where lower(a.email) = $1 and a.deleted_at is null and a.disabled_at is null
