-- Account of the address $1 and its password hash, if the account may sign in. $2 browser and $3 network of the
-- attempt.
select a.id as account_id, p.hash,
  exists (select from accounts.known_devices d
    where d.account_id = a.id and d.device = $2 and d.seen_at > now() - interval '30 days') as knows_browser,
  exists (select from accounts.known_devices d
    where d.account_id = a.id and d.device = $3 and d.seen_at > now() - interval '30 days') as knows_network
from accounts.accounts a join accounts.passwords p on p.account_id = a.id
where lower(a.email) = $1 and a.deleted_at is null and a.disabled_at is null
